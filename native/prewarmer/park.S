// gw_read, gw_park, gw_wait, gw_enter and gw_script (park.h, mailbox.h).
#include <sys/syscall.h>

    .text
    .globl gw_read, gw_read_return, gw_wait, gw_wait_return, gw_park, gw_park_return
    .globl gw_enter, gw_enter_end, gw_script, gw_script_end
    .type gw_park, @function
    .type gw_read, @function
    .type gw_wait, @function

gw_park: // rdi: the state page
    lea 4(%rdi), %rbx
wait:
    mov %rbx, %rdi
    xor %esi, %esi // FUTEX_WAIT
    xor %edx, %edx // while it is 0
    xor %r10d, %r10d // without a time limit
    mov $SYS_futex, %eax
    syscall
gw_park_return:
    jmp wait

gw_wait: // rdi: the state page
    lea 4(%rdi), %rdi
    xor %esi, %esi // FUTEX_WAIT
    xor %edx, %edx // while it is 0
    xor %r10d, %r10d // without a time limit
    mov $SYS_futex, %eax
    syscall
gw_wait_return:
    ret

gw_read: // edi: a descriptor, rsi: where to, rdx: how much
    push %rdx
    push %rsi
    mov %edi, %edi
    mov $0x100000000, %rax // struct pollfd: POLLIN after the descriptor
    or %rdi, %rax
    push %rax
    mov %rsp, %rdi
    mov $1, %esi
    xor %edx, %edx   // without a time limit
    xor %r10d, %r10d // and with the signals as they are
    mov $8, %r8d
    mov $SYS_ppoll, %eax
    syscall
gw_read_return:
    pop %rdi
    pop %rsi
    pop %rdx
    test %rax, %rax
    js failed
    mov %edi, %edi
    xor %eax, %eax // SYS_read
    syscall
failed:
    ret

gw_enter: // rbx: a function
    call *%rbx
    int3
gw_enter_end:
    ud2

gw_script: // rbx: struct gw_call[], r12: how many
    test %r12, %r12
    jz done
    mov 0(%rbx), %rax
    mov 8(%rbx), %rdi
    mov 16(%rbx), %rsi
    mov 24(%rbx), %rdx
    cmp $-1, %rax // GW_COPY
    je copy
    mov 32(%rbx), %r10
    mov 40(%rbx), %r8
    mov 48(%rbx), %r9
    syscall
next:
    mov %rax, 56(%rbx)
    add $64, %rbx
    dec %r12
    jmp gw_script
copy:
    mov %rdx, %rcx
    rep movsb
    xor %eax, %eax
    jmp next
done:
    int3
gw_script_end:
    ud2

    .size gw_park, . - gw_park
    .section .note.GNU-stack, "", @progbits
