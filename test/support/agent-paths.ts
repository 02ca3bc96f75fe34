import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { agentMachine } from '../../machines/agent.machine.js'
import { observeMachine } from '../../src/core/chart/observe-machine.js'
import type { NamedEvent } from '../../src/testing/explore-options.js'
import { agentSpace, generatePaths, type MachinePath } from '../../src/testing/index.js'
import { createInitEvent, createPath, createStep } from '../../src/testing/machine-path.js'

/** The label of an input, and the events after the start. */
type StoredPath = [input: string, events: NamedEvent[]]

/**
 * The paths over all pairs of consecutive transitions, from all inputs. To find them takes half a minute, so the suites that follow
 * them share their events in a file, for as long as the sources stay the same. `npm run suite -- graph` compares.
 */
export function agentPaths(): MachinePath[] {
  const root = findRoot(import.meta.dirname)
  const key = hashSources(root)
  const file = join(root, 'node_modules/.cache/statewright/agent-paths')
  if (existsSync(file)) {
    const stored = deserialize(readFileSync(file)) as { key: string; paths: StoredPath[] }
    if (stored.key === key) return retracePaths(stored.paths)
  }
  const generated = generatePaths(agentMachine, { ...agentSpace(), coverage: 'transition-pairs' })
  const paths = generated.paths.map(({ input, steps }): StoredPath => {
    const [, ...events] = steps.map(({ event, label }) => ({ event, label }))
    return [input, events]
  })
  mkdirSync(dirname(file), { recursive: true })
  // Another process may read it at the same time.
  writeFileSync(`${file}-${process.pid}`, serialize({ key, paths }))
  renameSync(`${file}-${process.pid}`, file)
  return retracePaths(paths)
}

function retracePaths(paths: readonly StoredPath[]): MachinePath[] {
  const observed = observeMachine(agentMachine)
  const inputs = agentSpace().inputs as Record<string, unknown>
  return paths.map(([label, events]) => {
    const value = inputs[label]
    let { snapshot, transitions } = observed.start(value)
    const steps = [createStep({ event: createInitEvent(value), label: 'start' }, snapshot, transitions)]
    for (const event of events) {
      ;({ snapshot, transitions } = observed.step(snapshot, event.event))
      steps.push(createStep(event, snapshot, transitions))
    }
    return createPath({ label, value }, steps)
  })
}

/** A bundle of this module is in another folder. */
function findRoot(folder: string): string {
  return existsSync(join(folder, 'machines/agent.machine.ts')) ? folder : findRoot(dirname(folder))
}

function hashSources(root: string): string {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')))
  for (const folder of ['guards', 'machines', 'src/core', 'src/testing'])
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort())
      if (file.endsWith('.ts')) hash.update(file).update(readFileSync(join(root, folder, file)))
  return hash.digest('hex')
}
