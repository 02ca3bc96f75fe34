import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { StatewrightError } from '../core/base/errors.js'
import { splitShellWords } from '../core/format/shell-words.js'
import type { ToolEntry } from '../core/tools/tool-set.js'
import {
  fileTokenStore,
  loopbackSignIn,
  type McpAuth,
  type McpOptions,
  type McpServer,
  mcpTools,
} from '../mcp/index.js'
import { badUsageError, CliError, type CliIO } from './command.js'
import { openPage } from './open-studio.js'

/**
 * Each text is a command line (`KEY=secret npx -y some-server /srv`, with environment variables before the command) or
 * an http(s) URL. Servers with the same name get numbers. If one server fails to start, the others are closed.
 */
export async function openMcp(
  texts: readonly string[],
  cwd: string,
  onWarning: (warning: string) => void = () => undefined,
  createAuth?: () => Promise<McpAuth>,
): Promise<{ entries: ToolEntry[]; close: () => Promise<void> }> {
  const parsed = texts.map((text) => parseTarget(text, cwd))
  const auth = parsed.some((target) => 'url' in target) ? await createAuth?.() : undefined
  const servers: McpServer[] = []
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()))
  }
  try {
    for (const target of parsed) {
      const options = { ...target, ...('url' in target && auth && { auth }), onWarning }
      // A name depends on the names before it.
      servers.push(await openNamed(options, new Set(servers.map(({ name }) => name))))
    }
  } catch (error) {
    await close()
    if (!(error instanceof StatewrightError)) throw error
    throw new CliError(error.code, `--mcp: ${error.message}`, '--mcp', { cause: error })
  }
  return { entries: servers, close }
}

async function openNamed(target: McpOptions, usedNames: ReadonlySet<string>): Promise<McpServer> {
  const server = await mcpTools(target)
  if (!usedNames.has(server.name)) return server
  await server.close()
  let number = 2
  while (usedNames.has(`${server.name}-${number}`)) number += 1
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
  if (command === undefined || command === '')
    throw badUsageError('--mcp needs the command that starts a server, or its URL.', '--mcp')
  return { command, args, env, cwd }
}

/** Signs the user in once, using the browser. Later commands use the stored tokens, even without a terminal. */
export async function createMcpAuth(
  { stderr, dataFolder }: Pick<CliIO, 'stderr' | 'dataFolder'>,
  open: (url: string) => void = openPage,
): Promise<McpAuth> {
  const folder = await dataFolder()
  const { redirectUrl, signIn } = loopbackSignIn({
    open: (url) => {
      stderr.write(`Sign in with your browser: ${url}\n`)
      open(url)
    },
  })
  return {
    redirectUrl,
    signIn: (url) => {
      if (stderr.isTTY !== true)
        throw new Error(
          'Sign-in needs a terminal. Run this command in a terminal once. It stores the tokens.',
        )
      return signIn(url)
    },
    ...(folder !== null && { store: createTokenStore(folder) }),
  }
}

/** Creates the folder when the first tokens are stored. */
function createTokenStore(folder: string): NonNullable<McpAuth['store']> {
  const store = fileTokenStore(join(folder, 'mcp-tokens.json'))
  return {
    ...store,
    update: async (key, edit) => {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await store.update?.(key, edit)
    },
  }
}
