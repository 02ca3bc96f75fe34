import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** A process that holds a lease. Plain text, made by `getProcessIdentity`, kept beside the lease. */
export type ProcessIdentity = string

/**
 * This process, so that another one on the same machine can tell whether it still runs: `pid@host`, with the machine's
 * boot and the process namespace (containers have their own) where there are such things.
 */
export function getProcessIdentity(): ProcessIdentity {
  return (processIdentity ??= `${process.pid}@${getMachinePlace()}`)
}

/** Who holds a lease, in words for people. */
export function describeHolder(holder: string): string {
  return `${holder} in process ${process.pid} on ${hostname()}`
}

/**
 * Whether a holder is known to be gone: it ran on this machine, since the same boot and in the same namespace, and runs
 * no more. False when any of that is not known.
 */
export function isProcessGone(identity: ProcessIdentity | null): boolean {
  const [, pid, place] = /^(\d{1,10})@(.+)$/s.exec(identity ?? '') ?? []
  if (pid === undefined || place !== getMachinePlace() || place.endsWith(unknownPlace)) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    // EPERM: the process runs and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

const unknownPlace = '/?'

let processIdentity: ProcessIdentity | undefined
let machinePlace: string | undefined

function getMachinePlace(): string {
  return (machinePlace ??= [hostname(), ...(process.platform === 'linux' ? readLinuxParts() : [])].join('/'))
}

/** A machine of the same name, or the same one after a restart or in another container, has other processes. */
function readLinuxParts(): string[] {
  try {
    return [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), readlinkSync('/proc/self/ns/pid')]
  } catch {
    return ['?']
  }
}
