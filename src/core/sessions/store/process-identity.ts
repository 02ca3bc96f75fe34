import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { valueOr } from '../../base/maybe-promise.js'

/** Plain text from `getProcessIdentity`, stored with a lease. */
export type ProcessIdentity = string

/**
 * Lets another process on the same machine check whether this one still runs: `pid@host`, followed by the boot id and
 * the process namespace (each container has its own) if available.
 */
export function getProcessIdentity(): ProcessIdentity {
  return (processIdentity ??= `${process.pid}@${getMachinePlace()}`)
}

export function describeHolder(holder: string): string {
  return `${holder} in process ${process.pid} on ${hostname()}`
}

/** Only for a process that ran on this machine, during the same boot and in the same namespace. */
export function isProcessGone(identity: ProcessIdentity | null): boolean {
  const [, pid, place] = /^(\d{1,10})@(.+)$/s.exec(identity ?? '') ?? []
  if (pid === undefined || place !== getMachinePlace() || place.endsWith(unknownPlace)) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    // EPERM means that the process runs as another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

const unknownPlace = '/?'

let processIdentity: ProcessIdentity | undefined
let machinePlace: string | undefined

function getMachinePlace(): string {
  return (machinePlace ??= [hostname(), ...(process.platform === 'linux' ? readLinuxParts() : [])].join('/'))
}

/** Process ids are unique only within one boot and one namespace, and machines can have the same name. */
function readLinuxParts(): string[] {
  return valueOr(
    () => [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), readlinkSync('/proc/self/ns/pid')],
    ['?'],
  )
}
