import { CliError, parseOptions, parseTime } from '../../src/cli/command.js'

const specs = {
  mcp: { value: 'SERVER', about: 'a server; can be repeated' },
  model: { short: 'm', value: 'NAME', about: 'the model' },
  rehearsal: { value: 'FILE', optional: true, about: 'a scenario' },
  json: { about: 'as JSON' },
} as const

describe('parseOptions', () => {
  it('returns all values of a repeated option in order, and the last one as its value', () => {
    const { values, all, positionals } = parseOptions(
      ['--mcp', 'one --a', 'go', '--json', '--mcp=two', '--mcp', 'one --a'],
      specs,
    )
    expect(all('mcp')).toEqual(['one --a', 'two', 'one --a'])
    expect(values).toEqual({ mcp: 'one --a', json: true })
    expect(positionals).toEqual(['go'])
  })

  it('returns no values for an absent option, a switch, or an omitted optional value', () => {
    const { values, all } = parseOptions(['--json', '--rehearsal', '-m', 'x'], specs)
    expect([all('mcp'), all('json'), all('rehearsal'), all('model')]).toEqual([[], [], [], ['x']])
    expect(values).toEqual({ json: true, rehearsal: true, model: 'x' })
  })

  it('refuses a repeated option without a value', () => {
    expect(() => parseOptions(['--mcp', 'one', '--mcp'], specs)).toThrow(CliError)
    expect(() => parseOptions(['--mcp=', '--mcp', 'one'], specs)).toThrow(
      '--mcp needs a value: --mcp SERVER.',
    )
  })
})

describe('parseTime', () => {
  const now = Date.parse('2026-05-04T12:00:00Z')

  it.each([
    ['30m', '2026-05-04T11:30:00.000Z'],
    ['12h', '2026-05-04T00:00:00.000Z'],
    ['7d', '2026-04-27T12:00:00.000Z'],
    ['2026-05-01T08:30:00Z', '2026-05-01T08:30:00.000Z'],
    ['2026-05-01T08:30+02:00', '2026-05-01T06:30:00.000Z'],
  ])('reads %s', (text, expected) => {
    expect(new Date(parseTime('--since', text, now)).toISOString()).toBe(expected)
  })

  it.each(['2026-05-01', '2026-05-01T08:30:00', '7', 'yesterday', ''])('refuses %j', (text) => {
    expect(() => parseTime('--since', text, now)).toThrow('--since must be an age such as 12h or 7d')
  })
})
