import { CliError } from '../../src/cli/cli-error.js'
import { parseOptions } from '../../src/cli/parse-options.js'

const specs = {
  mcp: { value: 'SERVER', about: 'a server; may be repeated' },
  model: { short: 'm', value: 'NAME', about: 'the model' },
  rehearsal: { value: 'FILE', optional: true, about: 'a scenario' },
  json: { about: 'as JSON' },
} as const

describe('parseOptions', () => {
  it('gives every value of an option that is repeated, in order, and the last one as its value', () => {
    const { values, all, positionals } = parseOptions(
      ['--mcp', 'one --a', 'go', '--json', '--mcp=two', '--mcp', 'one --a'],
      specs,
    )
    expect(all('mcp')).toEqual(['one --a', 'two', 'one --a'])
    expect(values.get('mcp')).toBe('one --a')
    expect(positionals).toEqual(['go'])
  })

  it('gives no values of an option that is not there, nor of a switch or an optional value left out', () => {
    const { values, all } = parseOptions(['--json', '--rehearsal', '-m', 'x'], specs)
    expect([all('mcp'), all('json'), all('rehearsal'), all('model')]).toEqual([[], [], [], ['x']])
    expect(values.get('rehearsal')).toBe(true)
  })

  it('refuses any of the repeated that has no value', () => {
    expect(() => parseOptions(['--mcp', 'one', '--mcp'], specs)).toThrow(CliError)
    expect(() => parseOptions(['--mcp=', '--mcp', 'one'], specs)).toThrow(
      '--mcp needs a value: --mcp SERVER.',
    )
  })
})
