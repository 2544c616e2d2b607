// System calls newer than some C library's headers; their numbers are the same on every architecture since Linux 5.1.
#ifndef GPUWHISK_SYSTEM_CALLS_H
#define GPUWHISK_SYSTEM_CALLS_H

enum {
  NR_io_uring_setup = 425,
  NR_io_uring_enter = 426,
  NR_io_uring_register = 427,
  NR_open_tree = 428,
  NR_move_mount = 429,
  NR_fsopen = 430,
  NR_fsconfig = 431,
  NR_fsmount = 432,
  NR_fspick = 433,
  NR_clone3 = 435,
  NR_pidfd_getfd = 438,
  NR_process_madvise = 440,
  NR_mount_setattr = 442,
  NR_landlock_create_ruleset = 444,
  NR_landlock_restrict_self = 446,
  NR_memfd_secret = 447,
  NR_process_mrelease = 448,
  NR_set_mempolicy_home_node = 450,
  NR_statmount = 457,
  NR_listmount = 458,
  NR_lsm_set_self_attr = 460,
  NR_mseal = 462,
  NR_open_tree_attr = 467,
};

#endif
