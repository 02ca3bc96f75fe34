import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { McpOptions } from '../../src/mcp/index.js'
import { checkMcpOptions } from '../../src/mcp/client/mcp-options.js'
import { failureOf, odd, open, oddCommand, toolNamed } from './support.js'

describe('the options of mcpTools', () => {
  it.each<[unknown, RegExp]>([
    [undefined, /either \{ command, args \}/],
    [{}, /either \{ command, args \}/],
    [{ command: 'a', url: 'http://a' }, /either/],
    [{ command: '' }, /command must be a non-empty string/],
    [{ command: 'a', args: 'b' }, /args must be a list of strings \(got 'b'\)/],
    [{ command: 'a', env: { A: 1 } }, /env\.A must be a string\.$/],
    [{ command: 'a', headers: {} }, /headers is not a known key/],
    [{ command: 'a', timeoutms: 1 }, /Did you mean timeoutMs\?/],
    [{ command: 'a', timeoutMs: -1 }, /timeoutMs must be a number of milliseconds from 0/],
    [{ command: 'a', startTimeoutMs: 0 }, /startTimeoutMs must be a whole number of at least 1/],
    [
      { command: 'a', needsApproval: 'yes' },
      /needsApproval must be true, false, 'annotations' or a function/,
    ],
    [{ command: 'a', defer: 'all' }, /defer must be true, false or a function/],
    [{ command: 'a', only: [1] }, /only\[0\] must be a string/],
    [{ command: 'a', onWarning: true }, /onWarning must be a function/],
    [{ url: 'file:///a' }, /url must be an http\(s\) URL/],
    [{ url: 'http://me:pw@host/' }, /url must be .* without user name and password \(use headers\)\.$/],
    [
      { url: 'http://a', headers: { A: 'b\nsecret' } },
      /headers must be .* valid HTTP header names and values\.$/,
    ],
    [{ url: 'http://a', cwd: '/' }, /cwd is not a known key/],
  ])('%j are refused before a server starts', async (options, message) => {
    const failure = await failureOf(open(options as McpOptions))
    expect(failure).toMatchObject({ name: 'ConfigError', code: 'invalid_config' })
    expect(failure.message).toMatch(message)
    expect(failure.message).not.toMatch(/secret|pw/)
  })

  it('keep their defaults for undefined values', () => {
    expect(checkMcpOptions({ command: 'a', timeoutMs: undefined, name: undefined })).toEqual({
      command: 'a',
      needsApproval: false,
      defer: false,
      trustAnnotations: false,
      resources: false,
      timeoutMs: 60_000,
      startTimeoutMs: 30_000,
      maxMessageBytes: 10_485_760,
    })
  })

  it('report a command that does not exist', async () => {
    const failure = await failureOf(open({ command: 'no-such-mcp-server' }))
    expect(failure).toMatchObject({
      name: 'StatewrightError',
      code: 'mcp_unavailable',
      subject: 'no-such-mcp-server',
      message:
        "The MCP server 'no-such-mcp-server' cannot be used. The command 'no-such-mcp-server' was not found. " +
        'Install it, or give its full path.',
    })
  })

  it('report a folder that does not exist', async () => {
    const cwd = join(tmpdir(), 'no-such-folder')
    const failure = await failureOf(open({ ...oddCommand('dies'), cwd }))
    expect(failure.message).toContain(`The folder '${cwd}' (cwd) does not exist.`)
  })

  it("decide about approval by the server's name of the tool", async () => {
    const requests: unknown[] = []
    const server = await odd('names', {
      needsApproval: (name, args) => {
        requests.push([name, args])
        return name === 'a.b'
      },
    })
    const ask = (name: string): unknown => {
      const { needsApproval } = toolNamed(server, name)
      return typeof needsApproval === 'function' && needsApproval({ x: 1 }, { context: undefined })
    }
    expect([ask('odd_names_of_mine_a_b'), ask('odd_names_of_mine_a_b_2')]).toEqual([true, false])
    expect(requests).toEqual([
      ['a.b', { x: 1 }],
      ['a/b', { x: 1 }],
    ])
  })

  it('require approval for tools that are not declared harmless', async () => {
    const server = await odd('liar', { needsApproval: 'annotations' })
    const asks = (name: string) => toolNamed(server, `liar_${name}`).needsApproval
    expect([asks('fine'), asks('orders'), asks('adds'), asks('contradiction')]).toEqual([
      true,
      false,
      false,
      true,
    ])
  })

  it("decide about deferring by the server's name of the tool", async () => {
    const server = await odd('names', { defer: (name) => name === 'a.b' })
    const isDeferred = (name: string) => toolNamed(server, name).defer === true
    expect([isDeferred('odd_names_of_mine_a_b'), isDeferred('odd_names_of_mine_a_b_2')]).toEqual([
      true,
      false,
    ])
    const all = await odd('names', { defer: true })
    expect(all.tools.map(({ defer }) => defer)).toEqual(all.tools.map(() => true))
  })
})
