// Linked into sanitizer builds: plugins stay mapped, so that reports can name their frames.
extern "C" int dlclose(void*) { return 0; }
