// What each type of option allows, in words.
#include "config/option.h"
