import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fingerprintCall } from '../../guards/lib/fingerprint.js'
import * as core from '../../src/index.js'
import { createAgent, openaiChat } from '../../src/index.js'
import type { AgentOptions } from '../../src/core/agent/agent-options.js'
import { type Scenario, startRehearsal } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { provideEntries } from '../support/entries.js'
import { cli, type CliCall, folder } from './support.js'

// For the programs in the test folders.
provideEntries({ statewright: core })

/** Sessions in the test's folder, shared by several commands. */
export interface Kept {
  cwd: string
  /** A command with `--store`. */
  run: (args: readonly string[], call?: CliCall) => ReturnType<typeof cli>
  /** Opens the store itself while `use` runs. */
  withStore: <Value>(use: (store: SyncSessionStore) => Value | Promise<Value>) => Promise<Value>
}

export async function createPlace(files: Record<string, unknown> = {}): Promise<Kept> {
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

const played = new Map<string, Promise<string>>()

afterAll(async () => {
  for (const template of played.values()) {
    await rm(await template, { recursive: true, force: true })
  }
})

/** The folder with the sessions that `play` creates. It runs once per test file, and each test gets a copy. */
export async function copyOf(name: string, play: () => Promise<Kept>): Promise<Kept> {
  const template = played.get(name) ?? playInto(play)
  played.set(name, template)
  const place = await createPlace()
  await cp(await template, place.cwd, { recursive: true })
  return place
}

async function playInto(play: () => Promise<Kept>): Promise<string> {
  const [{ cwd }, template] = await Promise.all([play(), mkdtemp(join(tmpdir(), 'statewright-played-'))])
  await cp(cwd, template, { recursive: true })
  return template
}

/** A program that uses the library and the same store. `use` receives its agent. */
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

/** A module with three tools. One needs approval, one runs on the client, one answers immediately. */
export const toolsModule = `
  import { defineTool } from 'statewright'
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

/** A call reference on the command line, made of its id and the fingerprint of its input. */
export function asAsked(id: string, name: string, input: object): string {
  return `${id}@${fingerprintCall(name, JSON.stringify(input)).slice(0, 16)}`
}
