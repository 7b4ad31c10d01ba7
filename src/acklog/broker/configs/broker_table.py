"""Every config of the server: Kafka's names where Kafka has them, `acklog.` where it does not.

Static ones come from defaults, file, environment and command line (`acklog.server.config`); dynamic ones can also be
changed through IncrementalAlterConfigs on the BROKER resource and then win.
"""

from acklog.broker.configs.definitions import Table
from acklog.broker.configs.group_defaults import GROUPS
from acklog.broker.configs.http_configs import HTTP
from acklog.broker.configs.node_configs import LIMITS, PROCESS, STATE
from acklog.broker.configs.topic_defaults import LOGS, TOPICS

BROKER = Table('broker', (*PROCESS, *HTTP, *TOPICS, *LOGS, *LIMITS, *GROUPS, *STATE))
