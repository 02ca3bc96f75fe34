import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTokenStore, loopbackSignIn, type McpAuth } from '../mcp/index.js'
import type { CliIO } from './command.js'
import { openPage } from './open-page.js'

/** The file of the tokens, in the folder for the user's data. */
const fileName = 'mcp-tokens.json'

/**
 * How the user of a terminal signs in at a server: in the browser, once. The tokens are kept for later commands, also for
 * those that run without a terminal.
 */
export async function createMcpAuth(
  { stderr, dataFolder }: Pick<CliIO, 'stderr' | 'dataFolder'>,
  open: (url: string) => void = openPage,
): Promise<McpAuth> {
  const folder = await dataFolder()
  const { redirectUrl, signIn } = loopbackSignIn({
    open: (url) => {
      stderr.write(`Sign in in your browser: ${url}\n`)
      open(url)
    },
  })
  return {
    redirectUrl,
    signIn: (url) => {
      if (stderr.isTTY !== true)
        throw new Error(
          'The user has to sign in, and there is no terminal. Run this command in a terminal once; the tokens are kept.',
        )
      return signIn(url)
    },
    ...(folder !== null && { store: storeIn(folder) }),
  }
}

/** The folder is created when there is something to store. */
function storeIn(folder: string): NonNullable<McpAuth['store']> {
  const store = fileTokenStore(join(folder, fileName))
  const createFolder = () => mkdir(folder, { recursive: true, mode: 0o700 })
  return {
    ...store,
    set: async (key, text) => {
      await createFolder()
      await store.set(key, text)
    },
    update: async (key, edit) => {
      await createFolder()
      await store.update?.(key, edit)
    },
  }
}
