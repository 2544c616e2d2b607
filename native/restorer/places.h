// Where a process that becomes a copy has what it needs on the way. Neither the kernel nor a linker puts anything there.
#ifndef GPUWHISK_PLACES_H
#define GPUWHISK_PLACES_H

#define GW_STATE_PLACE 0x10000000000
#define GW_MAILBOX_PLACE 0x10100000000
// The template's file, as a whole, for reading: what a rollback copies from.
#define GW_TEMPLATE_PLACE 0x11000000000
// Where the kernel's own pages lie until their final place is free.
#define GW_ASIDE_PLACE 0x14000000000

#endif
