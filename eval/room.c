/* SPDX-License-Identifier: Apache-2.0 */
/* Where code is put together.
 *
 * Note [Room for code]. Of most code it is not known how long it becomes. It is put together where the code before it was,
 * and copied when its length is known: room that grew with each code was 5 % of the time that passes and resolution take.
 * Whoever takes the room leaves none: an interrupt would leave it in use twice. */
#include "eval/resolve.h"

#include <string.h>

void room_take(Resolver *r) {
    Interp *in = r->in;
    r->instrs = in->spare.instrs;
    r->origin = in->spare.origin;
    r->sites = in->spare.sites;
    in->spare.instrs = (InstrVec){0};
    in->spare.origin = (OriginVec){0};
    in->spare.sites = (SiteVec){0};
    map_begin(&r->uses, NULL);
    map_begin(&r->counted, NULL);
}

static void give_back(Resolver *r) {
    enum { MUCH = 1 << 14 };
    Interp *in = r->in;
    if (r->instrs.cap > MUCH || r->sites.cap > MUCH)
        return;
    memset(r->origin.data, 0, r->origin.len * sizeof *r->origin.data); /* nobody refers to these */
    if (r->sites.len)
        memset(r->sites.data, 0, r->sites.len * sizeof *r->sites.data);
    vec_clear(&r->instrs);
    vec_clear(&r->origin);
    vec_clear(&r->sites);
    in->spare.instrs = r->instrs;
    in->spare.origin = r->origin;
    in->spare.sites = r->sites;
}

void room_leave(Resolver *r, Code *code) {
    Instr *instrs = mem_bytes(r->instrs.len * sizeof(Instr));
    memcpy(instrs, r->instrs.data, r->instrs.len * sizeof(Instr));
    code->instrs = instrs;
    code->origin = mem_new_n(Expr *, r->origin.len);
    memcpy(code->origin, r->origin.data, r->origin.len * sizeof *code->origin);
    code->sites = mem_new_n(Site, r->sites.len);
    if (r->sites.len)
        memcpy(code->sites, r->sites.data, r->sites.len * sizeof *code->sites);
    map_end(&r->counted);
    map_end(&r->uses);
    give_back(r);
}
