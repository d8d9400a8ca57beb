"""Jobs of several roles, from one file: what `plimsoll jobs submit` creates of it."""
