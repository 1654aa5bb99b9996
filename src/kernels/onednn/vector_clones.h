// Marks leaf loops that are compiled once for each vector width and chosen when the program starts.
#pragma once

// Sanitizers run their own code before they are set up where a resolver is instrumented: one version only.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define MILLRACE_ONE_CLONE
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define MILLRACE_ONE_CLONE
#endif

#ifdef MILLRACE_ONE_CLONE
#define MILLRACE_VECTOR_CLONES
#else
/// On functions without declarations elsewhere: neither compiler links a clone that another file declares.
#define MILLRACE_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

/// Bodies that clones share: inlined, so that each clone vectorises its own copy.
#define MILLRACE_INLINE inline __attribute__((always_inline))
