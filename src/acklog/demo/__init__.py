"""The main job, to be seen: `acklog demo`. `scenario` runs it, `report` says what came out, `run` is the command."""
