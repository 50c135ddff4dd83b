#ifndef PYPERF_HYBRID_H
#define PYPERF_HYBRID_H

#include "profile/profile.h"

/*
 * Events of which every PMU of a hybrid CPU counted its part, "cpu_core/cycles/" and
 * "cpu_atom/cycles/", in our recordings and in perf's: views show their sum, "cycles".
 *
 * While a recording is read the parts stay apart: their samples have layouts and groups of their
 * own. hybrid_join() then makes one event of them.
 */

/* The first event of which `event` is another PMU's part; itself where there is none. */
uint32_t hybrid_home(const struct profile *profile, uint32_t event);
/* `homes`: hybrid_home() of each event. What the parts counted so far is moved to their homes,
 * which get the sum's name; may be done again when there is more. Are there any parts? Or an error.
 */
int hybrid_join_events(struct profile *profile, const uint32_t *homes, struct err *err);
/* The same, and all that is known of their samples: nothing may be added after it. */
int hybrid_join(struct profile *profile, const uint32_t *homes, struct err *err);

#endif
