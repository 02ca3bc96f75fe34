import fc from 'fast-check'
import { createAddressPolicy } from '../../../src/core/config/address-policy.js'

const policy = createAddressPolicy([])

describe('without exceptions', () => {
  it.each([
    ['unspecified', '0.0.0.0', '::'],
    ['loopback', '127.8.9.10', '::1'],
    ['private', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fd00::1', 'fec0::1'],
    ['link-local', '169.254.0.1', 'fe80::1', 'fe80::1%eth0'],
    ['carrier-grade NAT', '100.64.0.1', '100.127.255.255'],
    ['multicast and broadcast', '224.0.0.1', '255.255.255.255', 'ff02::1'],
    ['reserved and for documentation', '240.0.0.1', '192.0.2.1', '198.18.0.1', '2001:db8::1', '100::1'],
    ['cloud metadata', '169.254.169.254', '100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254'],
    [
      'IPv4 in IPv6',
      '::ffff:8.8.8.8',
      '::8.8.8.8',
      '64:ff9b::8.8.8.8',
      '64:ff9b:1::1',
      '2002:808:808::1',
      '2001::1',
    ],
    ['unassigned', '4000::1', '::2'],
    ['not an address', 'localhost', '', '1', '0x7f000001', '127.1'],
  ])('%s is refused', (_, ...addresses) => {
    for (const address of addresses)
      expect([address, policy.allows(address, address)]).toEqual([address, false])
  })

  it.each(['8.8.8.8', '172.15.0.1', '172.32.0.1', '100.63.255.255', '2606:4700::1111', '2a00:1450::1'])(
    '%s is public',
    (address) => {
      expect(policy.allows(address, address)).toBe(true)
    },
  )

  it('no address is allowed if its IPv4-mapped form is refused', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(policy.allows(`::ffff:${address}`, 'x')).toBe(false)
      }),
    )
  })
})

it('an exception allows exactly the addresses that it names', () => {
  const exceptions = createAddressPolicy(['10.1.0.0/16', '::1', 'intra.example'])
  expect(exceptions.allows('10.1.255.255', 'x')).toBe(true)
  expect(exceptions.allows('10.2.0.0', 'x')).toBe(false)
  expect(exceptions.allows('::1', 'x')).toBe(true)
  expect(exceptions.allows('127.0.0.1', 'x')).toBe(false)
  expect(exceptions.allows('127.0.0.1', 'Intra.Example')).toBe(true)
  expect(exceptions.allows('127.0.0.1', 'not-intra.example')).toBe(false)
})

describe('the host of a URL, before it is resolved', () => {
  const hostOf = (url: string): string => new URL(url).hostname

  it.each([
    ['private addresses', 'http://10.0.0.1/', 'http://[fd00::1]/', 'http://[::ffff:10.0.0.1]/'],
    ['metadata', 'http://169.254.169.254/latest/meta-data', 'http://metadata.google.internal/'],
    [
      'other spellings of them',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://127.1/',
      'http://0177.0.0.1/',
    ],
    ['with a dot at the end', 'http://127.0.0.1./', 'http://localhost./', 'http://printer.local./'],
    ['in upper case', 'http://①⑥⑨.254.169.254/', 'http://LOCALHOST/', 'http://ｌocalhost/'],
    ['local names', 'http://db/', 'http://app.localhost/', 'http://db.corp/', 'http://nas.home.arpa/'],
    [
      'names that spell an address',
      'http://10.0.0.1.nip.io/',
      'http://a-127-0-0-1.example.com/',
      'http://1.10.0.0.1.example.com/',
    ],
  ])('%s is refused', (_, ...urls) => {
    for (const url of urls) expect([url, policy.allowsHost(hostOf(url))]).toEqual([url, false])
  })

  it.each([
    'http://example.com/',
    'https://8.8.8.8/',
    'http://[2606:4700::1111]/',
    'http://ec2-54-1-2-3.example.com/',
  ])('%s is accepted', (url) => {
    expect(policy.allowsHost(hostOf(url))).toBe(true)
  })

  it('no spelling of a refused address is accepted, nor a name that spells it', () => {
    const ways = (address: string): string[] => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
      const whole = ((a * 256 + b) * 256 + c) * 256 + d
      return [
        address,
        `${whole}`,
        `0x${whole.toString(16)}`,
        `${a}.${(b * 256 + c) * 256 + d}`,
        `0${a.toString(8)}.${b}.${c}.${d}`,
        `${address}.example.com`,
        `${a}-${b}-${c}-${d}.example.com`,
      ]
    }
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const isPublic = policy.allows(address, address)
        const hosts = ways(address).map((host) => hostOf(`http://${host}/`))
        expect(hosts.map((host) => policy.allowsHost(host))).toEqual(hosts.map(() => isPublic))
      }),
    )
  })

  it('a list without public addresses allows only the addresses that it names', () => {
    const listed = createAddressPolicy(['cdn.example.com', '10.1.0.0/16'], { allowsPublic: false })
    const hosts = ['CDN.example.com', '10.1.2.3', 'example.com', '8.8.8.8', '10.2.0.1', 'a.cdn.example.com']
    expect(hosts.filter((host) => listed.allowsHost(host))).toEqual(['CDN.example.com', '10.1.2.3'])
  })
})
