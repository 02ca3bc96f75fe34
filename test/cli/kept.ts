import { fingerprintCall } from '../../guards/lib/fingerprint.js'
import { join } from 'node:path'
import { createAgent, openaiChat } from '../../src/index.js'
import type { AgentOptions } from '../../src/core/agent/agent-options.js'
import { type Scenario, startRehearsal } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { cli, type CliCall, folder } from './support.js'

/** Sessions in a folder of the test's own, as several commands share them. */
export interface Kept {
  cwd: string
  /** A command with `--store`. */
  run: (args: readonly string[], call?: CliCall) => ReturnType<typeof cli>
  /** The store itself, for as long as `use` takes. */
  withStore: <Value>(use: (store: SyncSessionStore) => Value | Promise<Value>) => Promise<Value>
}

export async function kept(files: Record<string, unknown> = {}): Promise<Kept> {
  const cwd = await folder(files)
  return {
    cwd,
    run: (args, call) => cli([...args, '--store', 'file:kept'], { cwd, ...call }),
    withStore: async (use) => {
      const store = fileStore({ dir: join(cwd, 'kept') })
      try {
        return await use(store)
      } finally {
        store.close()
      }
    },
  }
}

/** A program that uses the library and the same store; `use` gets its agent. */
export async function withProgram(
  { withStore }: Kept,
  turns: Scenario['turns'],
  options: Partial<AgentOptions>,
  use: (agent: ReturnType<typeof createAgent>) => Promise<unknown>,
): Promise<void> {
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  try {
    await withStore((store) => {
      const model = openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' })
      return use(createAgent({ model, store, ...options }))
    })
  } finally {
    await rehearsal.close()
  }
}

const source = JSON.stringify(join(process.cwd(), 'src/core/tools/define-tool.ts'))

/** A module of tools: one that needs approval, one that the client carries out, one that just answers. */
export const toolsModule = `
  import { defineTool } from ${source}
  const input = { type: 'object' }
  export default [
    defineTool({ name: 'send_mail', description: 'Sends mail.', input, needsApproval: true,
      execute: (input) => 'sent to ' + input.to }),
    defineTool({ name: 'ask_client', description: 'Asks.', input, client: true }),
    defineTool({ name: 'look', description: 'Looks.', input, readOnly: true, execute: () => 'seen' }),
  ]`

export const says = (text: string) => ({ turns: [{ text }] })

export const calls = (...names: (readonly [id: string, name: string, args: object])[]) => ({
  turns: [
    {
      text: 'Let me see.',
      toolCalls: names.map(([id, name, args]) => ({ id, name, arguments: args })),
    },
    { text: 'Done.' },
  ],
})

/** A call as the command line names it: its id, and the fingerprint of what it asks. */
export function asAsked(id: string, name: string, input: object): string {
  return `${id}@${fingerprintCall(name, JSON.stringify(input)).slice(0, 16)}`
}
