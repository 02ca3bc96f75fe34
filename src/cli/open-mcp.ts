import { StatewrightError } from '../core/base/errors.js'
import { type McpAuth, type McpOptions, type McpServer, mcpTools } from '../mcp/index.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import { badUsageError, CliError } from './cli-error.js'
import { splitShellWords } from '../core/format/shell-words.js'

export interface OpenMcp {
  entries: ToolEntry[]
  close: () => Promise<void>
}

/**
 * Opens the servers of `--mcp`, each a command line (`KEY=secret npx -y some-server /srv`; the variables before the command
 * are for the server) or an http(s) URL, at which the user signs in by what `createAuth` returns. Servers with one name get numbers. When one
 * fails, the others are closed and a CliError says why.
 */
export async function openMcp(
  texts: readonly string[],
  cwd: string,
  onWarning: (warning: string) => void = () => undefined,
  createAuth?: () => Promise<McpAuth>,
): Promise<OpenMcp> {
  const parsed = texts.map((text) => parseTarget(text, cwd))
  const auth = parsed.some((target) => 'url' in target) ? await createAuth?.() : undefined
  const targets = parsed.map((target) => {
    return { ...target, ...('url' in target && auth && { auth }), onWarning }
  })
  const servers: McpServer[] = []
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()))
  }
  try {
    for (const target of targets) {
      // oxlint-disable-next-line no-await-in-loop -- the name of each depends on those before it
      servers.push(await openNamed(target, new Set(servers.map(({ name }) => name))))
    }
  } catch (error) {
    await close()
    if (!(error instanceof StatewrightError)) throw error
    throw new CliError(error.code, `--mcp: ${error.message}`, '--mcp', { cause: error })
  }
  return { entries: servers, close }
}

async function openNamed(target: McpOptions, taken: ReadonlySet<string>): Promise<McpServer> {
  const server = await mcpTools(target)
  if (!taken.has(server.name)) return server
  await server.close()
  let number = 2
  while (taken.has(`${server.name}-${number}`)) number += 1
  return mcpTools({ ...target, name: `${server.name}-${number}` })
}

function parseTarget(text: string, cwd: string): McpOptions {
  if (/^https?:\/\//i.test(text.trim())) return { url: text.trim() }
  const words = splitShellWords(text)
  if (words === null) throw badUsageError(`--mcp: a quote is not closed in: ${text}`, '--mcp')
  const env: Record<string, string> = {}
  while (/^[A-Za-z_]\w*=/.test(words[0] ?? '')) {
    const [name = '', ...value] = (words.shift() ?? '').split('=')
    env[name] = value.join('=')
  }
  const [command, ...args] = words
  if (command === undefined || command === '') {
    throw badUsageError('--mcp needs the command that starts a server, or the URL of one.', '--mcp')
  }
  return { command, args, env, cwd }
}
