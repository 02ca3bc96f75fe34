import { describeError } from '../../core/base/errors.js'
import { truncate } from '../../../guards/lib/words.js'
import { getOrCreate } from '../../core/base/values.js'
import { formatCount } from '../../core/format/format-words.js'
import {
  type MachinePath,
  createPathTo,
  listIds,
  formatPath,
  type PathStep,
  type Vertex,
} from '../machine-path.js'
import type { AnyEventObject, AnyStateMachine, InputFrom, SnapshotFrom } from 'xstate'
import { observeMachine, type Macrostep, type ObservedMachine } from '../../core/chart/observe-machine.js'
import { describeEvent, describeState, type DefinedTransition } from '../../core/chart/state-labels.js'
import { assertMachine, PathError } from '../errors.js'
import {
  type ExploreOptions,
  type ExploreProgress,
  type NamedValues,
  resolveSpace,
  createWriter,
  isActor,
  type ExploreSpace,
  type NamedEvent,
  type NamedInput,
} from '../explore-options.js'
import { stateLimitError, toMachineError, canHappen, listOffered } from '../explore.js'
import { listEmitted } from '../replay-path.js'

/** A changed transition with the shortest trace that shows the change. */
export interface MachineDifference {
  /** The first difference in the target state, the emitted events, or the output. */
  kind: MachineDifferenceKind
  /** The transition taken before and after, or null. If both are equal, the effect of the transition changed. */
  transition: Record<Side, string | null>
  /** The change as a sentence. */
  title: string
  /** The trace in the old version. */
  before: MachinePath
  /** The trace of the same events in the new version. */
  after: MachinePath
  /** Where the contexts diverge, if they diverge before the behavior does. This is often the cause. */
  contexts: ContextParting | null
  /** Title and trace as text. */
  toString(): string
}

/** The result of `diffMachines`. */
export interface MachineDiff {
  /** One trace per change, shortest first. Empty if the machines behave identically. */
  differences: MachineDifference[]
  /** Number of compared pairs of states. */
  pairs: number
  /** Why the comparison is incomplete, or null. */
  bounded: string | null
  /** Transitions declared by only one of the machines. */
  declared: { added: string[]; removed: string[] }
  toString(): string
}

/** Options for `diffMachines`. */
export interface DiffMachinesOptions<TMachine extends AnyStateMachine = AnyStateMachine> {
  /** Events to try in every state, or a function of the state. See `alphabet` of `generatePaths`. */
  events: NamedValues<AnyEventObject> | ((snapshot: SnapshotFrom<TMachine>) => NamedValues<AnyEventObject>)
  /** Inputs for both machines. Defaults to one start without input. */
  inputs?: NamedValues<InputFrom<TMachine>>
  /** Maximum number of state pairs. Defaults to 20,000. */
  limit?: number
  /** Serializes the snapshots of both machines, as in `generatePaths`. */
  serializeState?: ((snapshot: SnapshotFrom<TMachine>) => string) | undefined
  /** Called at the end. */
  onProgress?: (progress: ExploreProgress) => void
}

/**
 * Compares two versions of a machine. Sends the same events to both and finds the shortest traces on which they reach
 * different states, emit different events or produce different outputs, one trace per changed transition. Does not
 * explore beyond states that differ.
 *
 * No action is executed and no actor is started. The `before` paths are tests that the new version fails; write them
 * with `generateJestTests`.
 *
 * @example
 * const strict = machine.provide({ guards: {} })
 * const diff = diffMachines(machine, strict, { events: alphabet })
 * console.log(String(diff)) // → The machines behave the same in all 2 pairs of states.
 * @throws {PathError} for an invalid machine or invalid options
 */
export function diffMachines<TMachine extends AnyStateMachine>(
  before: TMachine,
  after: AnyStateMachine,
  options: DiffMachinesOptions<TMachine>,
): MachineDiff {
  checkMachine('before', before)
  checkMachine('after', after)
  const { events, ...rest } = expectOptions(options as unknown as DiffMachinesOptions)
  const space = resolveSpace({ ...rest, alphabet: events } as ExploreOptions, 'events')
  const machines = { before: observeMachine(before), after: observeMachine(after) }
  const found = new Map<string, MachineDifference>()
  const declared = compareDeclared(machines.before.transitions, machines.after.transitions)
  const { pairs, bounded } = explorePairs(machines, space, (parting) => {
    const transition = findTransition(parting)
    const key = JSON.stringify([parting.kind, transition])
    if (!found.has(key)) found.set(key, createDifference(parting, transition, declared))
  })
  const diff = {
    differences: [...found.values()].sort((one, other) => one.before.weight - other.before.weight),
    pairs,
    bounded: bounded?.message ?? null,
    declared,
  }
  return { ...diff, toString: () => formatDiff(diff) }
}

function checkMachine(side: Side, machine: unknown): void {
  try {
    assertMachine(machine)
  } catch (error) {
    if (!(error instanceof PathError)) throw error
    const message = `diffMachines(before, after): '${side}': ${describeError(error)}`
    throw new PathError(error.code, message, side, { cause: error })
  }
}

function expectOptions(options: DiffMachinesOptions): DiffMachinesOptions {
  if (typeof options === 'object' && options !== null && 'events' in options) return options
  throw new PathError(
    'bad_option',
    'diffMachines(before, after, options) needs { events }: the events to try, as a list, by name, or as a function of the snapshot.',
    'events',
  )
}

type Declared = readonly DefinedTransition[]

function compareDeclared(before: Declared, after: Declared): MachineDiff['declared'] {
  const [old, now] = [new Set(listIds(before)), new Set(listIds(after))]
  const only = (one: ReadonlySet<string>, other: ReadonlySet<string>): string[] =>
    [...one].filter((id) => !other.has(id))
  return { added: only(now, old), removed: only(old, now) }
}

/** The first differing transition of a step, or the last one if only its effect differs. */
function findTransition({ before, after }: Parting): Record<Side, string | null> {
  const [old, now] = [listIds(before.transitions), listIds(after.transitions)]
  const length = Math.max(old.length, now.length)
  for (let i = 0; i < length; i++) {
    if (old[i] !== now[i]) return { before: old[i] ?? null, after: now[i] ?? null }
  }
  return { before: old.at(-1) ?? null, after: now.at(-1) ?? null }
}

function createDifference(
  { kind, before, after }: Parting,
  transition: Record<Side, string | null>,
  declared: MachineDiff['declared'],
): MachineDifference {
  const paths = { before: tracePath(before, kind), after: tracePath(after, kind) }
  const difference = {
    kind,
    transition,
    title: describeChange(kind, transition, declared),
    ...paths,
    contexts: findContextParting(paths.before, paths.after),
  }
  return { ...difference, toString: () => formatDifference(difference) }
}

function tracePath({ vertex, emitted }: SideStep, kind: MachineDifferenceKind): MachinePath {
  const path = createPathTo(vertex)
  const last = path.steps.at(-1)
  if (last && kind === 'emitted') last.emitted = emitted
  if (last && kind === 'output') last.output = vertex.snapshot.output as unknown
  return path
}

function describeChange(
  kind: MachineDifferenceKind,
  { before, after }: Record<Side, string | null>,
  { added, removed }: MachineDiff['declared'],
): string {
  const gone = before !== null && removed.includes(before)
  const isNew = after !== null && added.includes(after)
  if (before === null && after === null) return `The machine starts with a different ${nouns[kind]}`
  if (before === after) return `${before ?? ''}: has a different ${nouns[kind]}`
  if (before === null)
    return `${after ?? ''}: is ${isNew ? 'new' : 'taken, but no transition was taken before'}`
  if (after === null) return `${before}: is ${gone ? 'missing' : 'no longer taken'}`
  return `${before}: ${gone ? 'is missing' : 'is not taken'}. ${isNew ? 'New' : 'Taken instead'}: ${after}`
}

const nouns = { state: 'state', emitted: 'list of emitted events', output: 'output' } as const

const maxText = 300

function formatDifference(difference: Omit<MachineDifference, 'toString'>): string {
  const { title, kind, before, after, contexts } = difference
  const shared = before.steps.slice(0, -1)
  const [old, now] = [before.steps.at(-1), after.steps.at(-1)]
  const lines = [title, `Starting with ${before.input}:`]
  if (shared.length > 0) lines.push(formatPath({ steps: shared }))
  if (contexts)
    lines.push(`  (from '${contexts.label}' on, the contexts differ in ${contexts.keys.join(', ')})`)
  lines.push(
    `  ${old?.label ?? 'start'}`,
    `    before → ${describeStep(old, kind)}`,
    `    after  → ${describeStep(now, kind)}`,
  )
  return lines.join('\n')
}

function describeStep(step: PathStep | undefined, kind: MachineDifference['kind']): string {
  if (!step) return ''
  const where = describeState(step.state)
  if (kind === 'output') return `${where} with the output ${truncate(createWriter()(step.output), maxText)}`
  if (kind === 'state') return where
  const emitted = (step.emitted ?? []).map((event) => describeEvent(event)).join(', ')
  return `${where}, emits ${truncate(emitted || 'nothing', maxText)}`
}

function formatDiff({ differences, pairs, bounded, declared }: Omit<MachineDiff, 'toString'>): string {
  const where = `${bounded === null ? 'all' : 'the first'} ${pairs} pairs of states`
  const limit = bounded === null ? [] : [bounded]
  if (differences.length === 0) return [`The machines behave the same in ${where}.`, ...limit].join('\n')
  return [
    `The machines differ at ${formatCount(differences.length, 'transition')}. The comparison covers ${where}.`,
    ...limit,
    ...formatList('Declared only before', declared.removed),
    ...formatList('Declared only after', declared.added),
    ...differences.map((difference, i) => `\n${i + 1}. ${formatDifference(difference)}`),
  ].join('\n')
}

function formatList(title: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${title}:`, ...ids.map((id) => `  ${id}`)]
}

/** Where the contexts of two machines diverge. */
export interface ContextParting {
  /** Number of the step. 0 is the start. */
  step: number
  label: string
  /** Dotted paths of the differing context keys, at most five. */
  keys: string[]
}

const maxKeys = 5
const maxNesting = 4

type Write = ReturnType<typeof createWriter>

/** The first step after which the contexts differ, unless that step is the last one. */
function findContextParting(before: MachinePath, after: MachinePath): ContextParting | null {
  const write = createWriter()
  for (const [step, { state, label }] of before.steps.slice(0, -1).entries()) {
    const keys = listDifferences(state.context, after.steps[step]?.state.context, write)
    if (keys.length > 0) return { step, label, keys: keys.slice(0, maxKeys) }
  }
  return null
}

function listDifferences(one: unknown, other: unknown, write: Write, path = '', depth = 0): string[] {
  if (write(one) === write(other)) return []
  if (depth >= maxNesting || !isRecord(one) || !isRecord(other) || !isAlike(one, other))
    return [path === '' ? '(all)' : path]
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])]
  return names.flatMap((name) =>
    listDifferences(one[name], other[name], write, path === '' ? name : `${path}.${name}`, depth + 1),
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !isActor(value)
}

function isAlike(one: object, other: object): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return Array.isArray(one) === Array.isArray(other)
  return one.length === other.length
}

type Side = 'before' | 'after'

interface SideStep {
  vertex: Vertex
  transitions: readonly DefinedTransition[]
  emitted: AnyEventObject[]
}

export type MachineDifferenceKind = 'state' | 'emitted' | 'output'

type Parting = Record<Side, SideStep> & { kind: MachineDifferenceKind }

/** Compares breadth first. Does not continue from differing states, because later steps cannot be compared. */
function explorePairs(
  machines: Readonly<Record<Side, ObservedMachine>>,
  space: ExploreSpace,
  describe: (parting: Parting) => void,
): { pairs: number; bounded: PathError | null } {
  // Outputs may change between comparisons, so the texts are not kept.
  const write = createWriter()
  const pairs: Record<Side, Vertex>[] = []
  const known = new Map<NamedInput, Set<string>>()
  let events = 0

  function meet(before: SideStep, after: SideStep): void {
    const kind = findKind(before, after, write)
    if (kind !== undefined) describe({ kind, before, after })
    if (kind === 'state') return
    const pair = { before: before.vertex, after: after.vertex }
    const seen = getOrCreate(known, pair.before.input, () => new Set<string>())
    const key = `${space.toKey(pair.before.snapshot)}\n${space.toKey(pair.after.snapshot)}`
    if (seen.has(key)) return
    if (pairs.length >= space.limit) {
      const vertices = pairs.map((one) => one.after)
      throw stateLimitError(space.limit, vertices)
    }
    seen.add(key)
    pairs.push(pair)
  }

  /** Starts the machine of a side, or sends an event to it. An impossible event changes nothing. */
  function go(side: Side, input: NamedInput, from?: Vertex, event?: NamedEvent): SideStep {
    const step = attempt()
    const { snapshot, transitions } = step
    const depth = from ? from.depth + 1 : 0
    const vertex: Vertex = { snapshot, input, depth, via: undefined, out: [] }
    if (from && event) vertex.via = { from, to: vertex, event, transitions }
    return { vertex, transitions, emitted: listEmitted(step.actions) }

    function attempt(): Macrostep {
      try {
        if (!from || !event) return machines[side].start(input.value)
        if (isOpenTo(event, from)) return machines[side].step(from.snapshot, event.event)
        return { snapshot: from.snapshot, transitions: [], actions: [] }
      } catch (error) {
        const { code, message, subject } = toMachineError(machines[side], error, input, from, event)
        throw new PathError(code, `The machine ${side}: ${message}`, subject, { cause: error })
      }
    }
  }

  function listEvents({ before, after }: Record<Side, Vertex>): NamedEvent[] {
    const found = new Map<string, NamedEvent>()
    for (const { snapshot } of [before, after])
      for (const event of snapshot.status === 'active' ? listOffered(space, snapshot) : [])
        getOrCreate(found, `${event.label}\n${event.event.type}`, () => event)
    return [...found.values()].filter((event) => isOpenTo(event, before) || isOpenTo(event, after))
  }

  const report = (bounded: PathError | null) => {
    space.onProgress({ states: pairs.length, events, waiting: 0 })
    return { pairs: pairs.length, bounded }
  }
  try {
    for (const input of space.inputs) meet(go('before', input), go('after', input))
    for (const { before, after } of pairs)
      for (const event of listEvents({ before, after })) {
        events++
        meet(go('before', before.input, before, event), go('after', after.input, after, event))
      }
  } catch (error) {
    if (!(error instanceof PathError) || error.code !== 'state_limit') throw error
    return report(error)
  }
  return report(null)
}

const isOpenTo = ({ event }: NamedEvent, { snapshot }: Vertex): boolean =>
  snapshot.status === 'active' && canHappen(snapshot, event)

function findKind(before: SideStep, after: SideStep, write: Write): MachineDifferenceKind | undefined {
  const [one, other] = [before.vertex.snapshot, after.vertex.snapshot]
  if (one.status !== other.status || write(one.value) !== write(other.value)) return 'state'
  if (write(before.emitted) !== write(after.emitted)) return 'emitted'
  return write(one.output) === write(other.output) ? undefined : 'output'
}
