// What must not outlive us is bound to us: the kernel kills it when we die, however we die.
export function boundToUs(command) {
    return ['setpriv', '--pdeathsig', 'KILL', '--', ...command];
}
