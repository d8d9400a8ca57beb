"""Jobs of several roles, from one file: what `plimsoll submit` creates of it."""
