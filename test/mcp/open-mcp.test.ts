import fc from 'fast-check'
import { openMcp } from '../../src/cli/mcp-servers.js'
import { splitShellWords } from '../../src/core/format/shell-words.js'
import type { McpServer } from '../../src/mcp/index.js'
import { httpServer, json } from './http-server.js'
import { failureOf, oddCommand, use } from './support.js'
import { unicodeText } from '../support/unicode-text.js'

const command = (file: string): string =>
  [oddCommand(file).command, ...oddCommand(file).args].map((word) => `'${word}'`).join(' ')

describe('splitWords', () => {
  it.each([
    ['npx -y  server\t/srv ', ['npx', '-y', 'server', '/srv']],
    [`a 'b c' "d \\"e\\" $F" g\\ h 'i'"j"k ''`, ['a', 'b c', 'd "e" $F', 'g h', 'ijk', '']],
    [`'a\\b' "c\\d" e\\`, ['a\\b', 'c\\d', 'e\\']],
    ['', []],
    [`a "b`, null],
    [`a 'b`, null],
  ])('%j', (line, words) => {
    expect(splitShellWords(line)).toEqual(words)
  })

  it('returns all quoted words', () => {
    const quote = (word: string): string => `"${word.replaceAll(/["\\]/g, '\\$&')}"`
    fc.assert(
      fc.property(fc.array(unicodeText()), (words) => {
        expect(splitShellWords(words.map(quote).join(' '))).toEqual(words)
      }),
    )
  })
})

describe('openMcp', () => {
  it('opens commands, with preceding variables, and addresses', async () => {
    const result = { content: [{ type: 'text', text: 'ok' }] }
    const { url } = await httpServer((request, response) => json(response, request, result))
    const { entries, close } = await openMcp([`A=1 B='x=y z' ${command('results')}`, ` ${url} `], '/')
    const [results, web] = entries as McpServer[]
    if (results === undefined || web === undefined) throw new Error('One is missing.')
    try {
      expect([results.name, web.name]).toEqual(['results', 'web'])
      const { env, cwd } = JSON.parse(String(await use(results, 'results_env')))
      expect(env).toMatchObject({ A: '1', B: 'x=y z' })
      expect(cwd).toBe('/')
      expect(await use(web, 'web_go')).toBe('ok')
    } finally {
      await close()
    }
    expect((await failureOf(use(results, 'results_env'))).message).toContain('was closed')
  })

  it('numbers servers with the same name', async () => {
    const { entries, close } = await openMcp([command('dies'), command('dies'), command('dies')], '/')
    await close()
    expect(entries.map((entry) => 'name' in entry && entry.name)).toEqual(['mortal', 'mortal-2', 'mortal-3'])
  })

  it('forwards warnings', async () => {
    const warnings: string[] = []
    const { close } = await openMcp([command('endless')], '/', (warning) => warnings.push(warning))
    await close()
    expect(warnings).toHaveLength(1)
  })

  it('closes the opened servers if one cannot be used', async () => {
    const failure = await failureOf(openMcp([command('dies'), 'no-such-mcp-server'], '/'))
    expect(failure).toMatchObject({ name: 'CliError', code: 'mcp_unavailable', subject: '--mcp' })
    expect(failure.message).toMatch(/^--mcp: The MCP server 'no-such-mcp-server' cannot be used\./)
  })

  it.each([
    ['   ', 'needs the command'],
    ['A=1', 'needs the command'],
    [`npx "server`, 'a quote is not closed'],
  ])('refuses %j', async (text, why) => {
    const failure = await failureOf(openMcp([text], '/'))
    expect(failure).toMatchObject({ name: 'CliError', code: 'bad_usage' })
    expect(failure.message).toContain(why)
  })
})
