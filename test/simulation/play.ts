import { setPlatform } from '../../src/core/base/platform.js'
import { isQueuedText, isSteeringText } from '../../src/core/sessions/inbox/queued-message.js'
import { checkSessionLog } from '../../src/testing/check-session-log.js'
import { Faults } from './faults.js'
import { Host } from './host.js'
import { findLeftovers } from './oracles.js'
import { People } from './people.js'
import { calmAt, type Plan } from './plan.js'
import { SharedStore } from './shared-store.js'
import { Effects } from './tools.js'
import { type Line, type Life, World } from './world.js'

/** The outcome of a story. */
export interface Story {
  /** The broken promises, oldest first. */
  broken: string[]
  trace: readonly Line[]
  steps: number
  /** The final states of the runs. */
  ends: string[]
}

/** The time limit in milliseconds. */
const endsAt = calmAt + 1_800_000
const mostSteps = 60_000
/** The maximum time that a lease may outlive the end of all work, in milliseconds. */
const silence = 80_000

const workStates: readonly unknown[] = ['RUNNING', 'WAITING_FOR_TOOL']
const restStates: readonly unknown[] = ['WAITING_FOR_INPUT', 'PAUSED']

/** Whether it waits for a turn that starts with it. */
const isForNextTurn = (text: string): boolean => isQueuedText(text) && !isSteeringText(text)

/** Plays a plan's story to its end in simulated time. */
export async function play(plan: Plan): Promise<Story> {
  const world = new World(plan.seed)
  const shared = new SharedStore(world)
  const effects = new Effects(world, shared)
  const hosts: Host[] = []
  const find = (life: Life): Host | undefined => hosts.find((host) => host.life === life)
  const faults = new Faults(world, plan.faults, {
    kill: (life, ms) => (life.name === 'desk' ? undefined : find(life)?.kill(ms)),
    pause: (life, ms) => find(life)?.pause(ms),
  })
  const sessions = Array.from({ length: plan.sessions }, (_, i) => `s${i + 1}`)
  const people = new People({ world, plan, shared, effects, desks: () => hosts })

  /** An engine's pending work, read from the store as a queue would track it. */
  const isDue = (session: string): boolean => {
    const listed = shared.store.get(session)
    if (!listed) return true
    const state = listed.summary?.state
    if (workStates.includes(state)) return true
    const inbox = shared.store.inbox.read(session)
    if (restStates.includes(state))
      return inbox.some(({ text }) => !isForNextTurn(text)) || people.hasAnswers(session)
    return inbox.some(({ text }) => isQueuedText(text)) && (state !== 'CANCELLED' || world.isCalm)
  }
  const nextOptions = (session: string) => {
    const { state, runs = 1 } = shared.store.get(session)?.summary ?? {}
    // After a stopped run, someone has to request the next one.
    if (world.isCalm && state === 'CANCELLED' && isDue(session))
      return { turn: runs + 1, input: undefined as never }
    return people.nextOptions(session)
  }
  const stage = {
    world,
    plan,
    faults,
    shared,
    effects,
    listDue: () =>
      sessions.filter((session) => isDue(session) || (!world.isCalm && world.draw('idle') < 0.03)),
    nextOptions,
    onSettle: people.onSettle.bind(people),
  }
  setPlatform({
    random: () => world.draw('platform'),
    createUuid: () => world.createId(),
    fillWithChance: (bytes) => bytes.map(() => Math.floor(world.draw('platform') * 256)),
    runNextTurn: (work) => void world.after(0, world.current, work),
    runSoon: (work) => void world.after(0, world.current, work),
  })
  const strays = (error: unknown): void =>
    world.break(`Nobody catches ${error instanceof Error ? error.stack : String(error)}`)
  process.on('unhandledRejection', strays)
  try {
    for (let i = 0; i <= plan.processes; i++) hosts.push(new Host(stage, i))
    schedule(world, plan, hosts)
    world.after(calmAt, null, () => {
      world.tell('world', 'is calm')
      world.isCalm = true
      faults.end()
      for (const host of hosts) host.calm()
      const attend = (): void => {
        for (const session of sessions)
          if (restStates.includes(shared.store.get(session)?.summary?.state)) void people.attend(session)
        world.after(15_000, null, attend)
      }
      attend()
    })
    let quietSince: number | null = null
    await world.play(() => {
      if (world.time > endsAt) {
        for (const session of sessions)
          if (isDue(session) || restStates.includes(shared.store.get(session)?.summary?.state))
            world.break(`${session} never ends: it is ${shared.store.get(session)?.summary?.state}.`)
        world.break('Something goes on forever.')
        return true
      }
      const isQuiet =
        world.isCalm &&
        !people.hasWaiting &&
        sessions.every(
          (session) => !isDue(session) && !restStates.includes(shared.store.get(session)?.summary?.state),
        )
      if (!isQuiet) quietSince = null
      else quietSince ??= world.time
      return quietSince !== null && world.time - quietSince > silence
    }, mostSteps)
    if (world.broken.length === 0) {
      for (const { id } of shared.store.list({ children: true })) {
        const violation = checkSessionLog(shared.store.read(id), id)
        if (violation)
          world.break(`Record ${violation.seq} of ${id}: ${violation.message} (${violation.law})`)
      }
      for (const problem of [...findLeftovers(shared), ...people.findUnsaid()]) world.break(problem)
    }
  } finally {
    for (const host of hosts) host.life.isAlive = false
    process.off('unhandledRejection', strays)
    setPlatform()
  }
  const ends = shared.store
    .list({ children: true })
    .map(({ summary }) => `${summary?.state} ${summary?.reason}`)
  return { broken: world.broken, trace: world.trace, steps: world.steps, ends }
}

/** Timed events. */
function schedule(world: World, plan: Plan, hosts: readonly Host[]): void {
  for (const fault of plan.faults) {
    if (fault.kind === 'stop' || fault.kind === 'jump') {
      const { kind, at, process: number, ms } = fault
      if (number <= plan.processes) world.after(at, null, () => hosts[number]?.[kind](ms))
    }
    if ((fault.kind === 'kill' || fault.kind === 'pause') && 'at' in fault.when) {
      const { kind, ms, when } = fault
      const host = hosts[when.process]
      if (when.process > plan.processes || !host) continue
      world.after(when.at, null, () => {
        if (host.life.isAlive && !(kind === 'pause' && host.life.isPaused)) host[kind](ms)
      })
    }
  }
}
