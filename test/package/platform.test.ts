import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** Sources of nondeterminism: times, waits, randomness. */
const chancy =
  /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\bgetRandomValues\b|(?<![.\w#])(?:setTimeout|setInterval|setImmediate)(?=\()|\bAbortSignal\.timeout\b|'node:timers/g

/**
 * The files that may access the platform, with the reason. All other code gets time from a `Clock` and randomness from
 * `getPlatform()`, so that `npm run simulate` is reproducible by seed.
 */
const homes: Record<string, string> = {
  'src/core/base/clock.ts': 'the clock of the platform',
  'src/core/base/platform.ts': 'chance, and the turns of the event loop',
  // Network clients. Connections close by real time.
  'src/core/models/openai/node-transport.ts': 'the network',
  'src/core/models/openai/exchange.ts': 'the network',
  'src/ai-sdk/language-model.ts': 'the network',
  'src/web/sse.ts': 'the network',
  'src/ui/client/chat-transport.ts': 'the clock of a page',
  'src/ui/client/connection.ts': 'pages come back apart',
  // Standalone servers with real timers.
  'src/dbos/dbos-sessions.ts': 'DBOS',
  'src/restate/restate-sessions.ts': 'Restate',
  'src/stores/file/database.ts': 'SQLite waits for other processes',
  'src/otel/otel-kit.ts': 'the clock of telemetry',
  'src/testing/check-agent/agent-scene.ts': 'the clock of checked agents',
  'src/testing/provider/check-provider.ts': 'a provider over a network is checked',
  'src/testing/replay-path.ts': 'the clock of generated tests',
  'src/testing/store/check-store.ts': 'a store by a clock of its own is checked',
  // Terminals and pages with a person.
  'src/cli/commands/batch.ts': 'a terminal',
  'src/cli/commands/sessions/list.ts': 'a terminal',
  'src/cli/commands/sessions/show.ts': 'a terminal',
  'src/cli/follow-run.ts': 'a terminal',
  'src/rehearsal/rehearsal.ts': 'a server for rehearsals',
  'src/studio/inspector.ts': 'the studio',
  'src/studio/live-feed.ts': 'the studio',
  'src/studio/loopback.ts': 'the studio: a password',
  'src/studio/prefetch.ts': 'the studio',
  'src/studio/session-catalogue.ts': 'the studio',
  'src/studio/session-fold.ts': 'the studio',
  'src/studio/studio-views.ts': 'the studio',
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .filter((name) => !name.startsWith('src/studio/client/'))
}

/** A file's accesses to the platform, without comments. */
function findUses(file: string): string[] {
  const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')
  return code.match(chancy) ?? []
}

const users = ['src', 'machines', 'guards', 'spec']
  .flatMap(filesIn)
  .filter((file) => findUses(file).length > 0)

it('only the designated files use time or chance of the platform', () => {
  expect(
    users.filter((file) => !(file in homes)).map((file) => `${file}: ${findUses(file).join(', ')}`),
  ).toEqual([])
})

it('each of the designated files does', () => {
  expect(Object.keys(homes).filter((file) => !users.includes(file))).toEqual([])
})

it('in the core, these are the clock, the platform and the network', () => {
  const kinds = users.filter((file) => file.startsWith('src/core/')).map((file) => homes[file])
  expect(new Set(kinds)).toEqual(
    new Set(['chance, and the turns of the event loop', 'the clock of the platform', 'the network']),
  )
})
