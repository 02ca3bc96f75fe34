import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { refusal } from '../../core/config/check.js'

/** Which addresses a URL may lead to. */
export interface AddressPolicy {
  /** `host` is the name in the URL that led to the address; an address stands for itself. */
  allows(address: string, host: string): boolean
}

type Block = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** The only part of IPv6 that is routed publicly (RFC 4291, IANA); whatever is new outside of it is refused, too. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Public by its number, but answered by the cloud itself: Azure's host, which hands out credentials. */
const cloudHosts = new Set(['168.63.129.16'])

/**
 * Public unicast addresses, and those that are allowed by name, address or CIDR block. IPv6 that stands for IPv4 (mapped,
 * NAT64, 6to4, Teredo) is refused as such: it reaches private addresses under another number.
 * @throws {ConfigError} for an entry that is none of these
 */
export function addressPolicy(allowed: readonly string[]): AddressPolicy {
  const blocks: Block[] = []
  const hosts = new Set<string>()
  for (const [index, entry] of allowed.entries()) {
    const block = blockOf(entry)
    if (block !== undefined) blocks.push(block)
    else if (/^[\p{L}\p{N}._-]+$/u.test(entry)) hosts.add(entry.toLowerCase())
    else {
      const path = `allowAddresses[${index}]`
      throw refusal('attachment options', [
        { path, sentence: `${path} must be an address, a CIDR block such as 10.0.0.0/8, or a host name.` },
      ])
    }
  }
  return {
    allows(address, host) {
      if (isIP(address) === 0) return false
      const parsed = ipaddr.parse(address)
      return (
        hosts.has(host.toLowerCase()) || blocks.some((block) => contains(block, parsed)) || isPublic(parsed)
      )
    },
  }
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast' || cloudHosts.has(address.toString())) return false
  return address.kind() === 'ipv4' || contains(globalUnicast, address)
}

function contains([network, bits]: Block, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return network.kind() === address.kind() && address.match(network, bits)
}

function blockOf(entry: string): Block | undefined {
  if (isIP(entry) !== 0) {
    const address = ipaddr.parse(entry)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  }
  return ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : undefined
}
