import ipaddr from 'ipaddr.js'
import { invalidInputError } from './check-input.js'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'

export interface AddressPolicy {
  /** Whether an address is allowed. `host` is the host name of the URL, or the IP address if the URL contains one. */
  allows(address: string, host: string): boolean
  /** Rejects names of local networks, and names that contain a non-public address (`10.0.0.1.example.com`). */
  allowsHost(host: string): boolean
}

export interface AddressPolicyOptions {
  /** Whether public addresses are allowed. Defaults to true. */
  allowsPublic?: boolean
  /** Name of the option in errors. Defaults to `allowAddresses` of `attachment options`. */
  option?: { path: string; of: string }
}

type Block = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** The only publicly routed IPv6 range (RFC 4291, IANA). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Reserved names that no public server has (RFC 6761, 6762, 8375, ICANN's `.internal`), and common local names. */
const localNames = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|localdomain|home\.arpa)$/

/** Azure's metadata host, which issues credentials but has a public address. */
const cloudHosts = new Set(['168.63.129.16'])

/**
 * Allows public unicast addresses and the listed names, addresses and CIDR blocks. IPv6 addresses that embed IPv4
 * (mapped, NAT64, 6to4, Teredo) are rejected because they may reach private addresses.
 * @throws {ConfigError} for any other entry
 */
export function createAddressPolicy(
  allowed: readonly string[],
  {
    allowsPublic = true,
    option = { path: 'allowAddresses', of: 'attachment options' },
  }: AddressPolicyOptions = {},
): AddressPolicy {
  const blocks: Block[] = []
  const hosts = new Set<string>()
  for (const [index, entry] of allowed.entries()) {
    const block = parseBlock(entry)
    if (block !== undefined) blocks.push(block)
    else if (/^[\p{L}\p{N}._-]+$/u.test(entry)) hosts.add(entry.toLowerCase())
    else {
      const path = `${option.path}[${index}]`
      const sentence = `${path} must be an address, a CIDR block such as 10.0.0.0/8, or a host name.`
      throw invalidInputError(option.of, [{ path, sentence }])
    }
  }
  const allows = (address: string, host: string): boolean => {
    if (!isAddress(address)) return false
    const parsed = ipaddr.parse(address)
    if (hosts.has(host.toLowerCase()) || blocks.some((block) => containsAddress(block, parsed))) return true
    return allowsPublic && isPublic(parsed)
  }
  const allowsHost = (host: string): boolean => {
    const name = host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
    if (isAddress(name)) return allows(name, name)
    if (hosts.has(name)) return true
    if (!allowsPublic || !name.includes('.') || localNames.test(name)) return false
    return findSpelledAddresses(name).every((address) => allows(address, name))
  }
  return { allows, allowsHost }
}

/** Finds addresses that are spelled out in a name, because some DNS services resolve such names to the address. */
function findSpelledAddresses(name: string): string[] {
  const found = name.matchAll(/(?<!\d)(?=(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?!\d))/g)
  return Array.from(found, ([, ...numbers]) => numbers.map(Number).join('.')).filter(isAddress)
}

function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text)
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast' || cloudHosts.has(address.toString())) return false
  return address.kind() === 'ipv4' || containsAddress(globalUnicast, address)
}

function containsAddress([network, bits]: Block, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return network.kind() === address.kind() && address.match(network, bits)
}

function parseBlock(entry: string): Block | undefined {
  if (isAddress(entry)) {
    const address = ipaddr.parse(entry)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  }
  return ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : undefined
}

/** The signature of `dns.lookup` with `all: true`. */
export type ResolveHost = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/** The socket connects to exactly the allowed addresses that this returns, which prevents DNS rebinding. */
export function createPublicLookup(
  policy: AddressPolicy,
  refuse: (address: string) => Error,
  resolve: ResolveHost,
): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const allowed = found.filter(({ address }) => policy.allows(address, host))
      const [first] = allowed
      if (first === undefined) done(refuse(found[0]?.address ?? 'no address'), '', 0)
      else if (options.all === true) done(null, allowed)
      else done(null, first.address, first.family)
    })
  }
}
