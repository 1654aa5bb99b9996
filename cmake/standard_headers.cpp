// Holds nothing: the target that it belongs to keeps the precompiled headers of all rooms.
