import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMcpAuth, openMcp } from '../../src/cli/mcp-servers.js'
import { authServer } from '../mcp/auth-server.js'
import { failureOf } from '../mcp/support.js'

describe('--mcp with a server that requires a sign-in', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mcp-'))
  })

  afterEach(async () => {
    await rm(folder, { recursive: true })
  })

  /** The printed text, and whether a person reads it. */
  const terminal = (isTTY: boolean) => {
    const printed: string[] = []
    const stderr = { isTTY, write: (text: string) => printed.push(text) > 0 }
    const io = { stderr, dataFolder: async () => join(folder, 'data') }
    return { io: io as unknown as Parameters<typeof createMcpAuth>[0], printed }
  }

  it('opens the browser at a terminal once', async () => {
    const { url } = await authServer()
    const { io, printed } = terminal(true)
    const visited: string[] = []
    const visit = (address: string): void => {
      visited.push(address)
      void fetch(address)
    }
    const first = await openMcp([url], '/', undefined, () => createMcpAuth(io, visit))
    await first.close()
    expect(printed).toEqual([`Sign in with your browser: ${visited[0]}\n`])
    const { mode } = await stat(join(folder, 'data/mcp-tokens.json'))
    expect(mode & 0o777).toBe(0o600)
    const later = terminal(false)
    const second = await openMcp([url], '/', undefined, () => createMcpAuth(later.io, visit))
    await second.close()
    expect(second.entries.map((entry) => 'name' in entry && entry.name)).toEqual(['safe'])
    expect(visited).toHaveLength(1)
  })

  it('prints instructions without a terminal', async () => {
    const { url } = await authServer()
    const failure = await failureOf(openMcp([url], '/', undefined, () => createMcpAuth(terminal(false).io)))
    expect(failure).toMatchObject({ name: 'CliError', code: 'mcp_sign_in' })
    expect(failure.message).toContain('Run this command in a terminal once')
  })

  it('creates no folder if no user signs in', async () => {
    const failure = await failureOf(
      openMcp(['http://127.0.0.1:1/mcp'], '/', undefined, () => createMcpAuth(terminal(true).io)),
    )
    expect(failure).toMatchObject({ code: 'mcp_unavailable' })
    expect(await readdir(folder)).toEqual([])
  })
})
