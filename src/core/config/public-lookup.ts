import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { AddressPolicy } from './address-policy.js'

/** `dns.lookup` with `all: true`. */
export type ResolveHost = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/**
 * Resolves a name for a socket and hands over only addresses that may be reached. The socket connects to these very
 * addresses, so a name that resolves differently the next time (DNS rebinding) gains nothing.
 */
export function createPublicLookup(
  policy: AddressPolicy,
  refuse: (address: string) => Error,
  resolve: ResolveHost,
): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        done(error, '', 0)
        return
      }
      const allowed = found.filter(({ address }) => policy.allows(address, host))
      const [first] = allowed
      if (first === undefined) done(refuse(found[0]?.address ?? 'no address'), '', 0)
      else if (options.all === true) done(null, allowed)
      else done(null, first.address, first.family)
    })
  }
}
