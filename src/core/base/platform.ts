import { StatewrightError } from './errors.js'

/**
 * Randomness and event loop of the platform; time comes from `clock.ts`. Tests replace both to replay a run
 * exactly.
 */
export interface Platform {
  /** A number from 0, below 1. */
  random(): number
  /** Undefined if the platform has none. */
  createUuid(): string | undefined
  fillWithChance(bytes: Uint8Array<ArrayBuffer>): Uint8Array
  /** Calls back once everything else that waits in this process, or in this page, has had its turn. */
  runNextTurn(work: () => void): void
  /** Calls back after the caller could subscribe to what it received. */
  runSoon(work: () => void): void
}

/** The one that the code runs on. */
const ownPlatform: Platform = {
  random: () => Math.random(),
  // Pages that did not come over https have no `randomUUID`.
  createUuid: () => crypto.randomUUID?.(),
  fillWithChance: (bytes) => crypto.getRandomValues(bytes),
  runNextTurn: (work) => {
    // Browsers have no such thing, and Node makes a timer of 0 ms wait for 1.
    if (typeof setImmediate === 'function') setImmediate(work)
    else setTimeout(work, 0)
  },
  runSoon: (work) => {
    setTimeout(work)
  },
}

let current = ownPlatform

/** The platform at hand. */
export const getPlatform = (): Platform => current

/** Replaces the platform for everything in this process, for tests; without one, it is the platform's own again. */
export function setPlatform(platform: Platform = ownPlatform): void {
  current = platform
}

/**
 * A random UUID. Some platforms hand it out as a chain of sixteen pieces; reading a character makes it one string, which
 * a parked run keeps for long.
 */
export function createId(): string {
  const id = getPlatform().createUuid() ?? formatUuid(getPlatform().fillWithChance(new Uint8Array(16)))
  id.charCodeAt(0)
  return id
}

/** UUID version 4 for pages without https, which have no `randomUUID`. */
function formatUuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte, i) => {
    const marked = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte
    return marked.toString(16).padStart(2, '0')
  }).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Resolves after one turn of the event loop, so that other work can run. */
export async function yieldToEventLoop(): Promise<void> {
  await new Promise<void>((resolve) => {
    getPlatform().runNextTurn(resolve)
  })
}

/** Milliseconds of long work before it yields, so that runs and other pages go on. */
export const stretchMs = 8

/** Calls started per turn of the event loop. Each takes up to 0.5 ms plus the tool itself. */
export const startsPerTick = 50

/**
 * Runs `work` for all items at once and returns the outcomes in order. At most `startsPerTick` start per turn
 * of the event loop. Throws the signal's reason if it aborts before all have started.
 */
export async function runStaggered<Item, Outcome>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item) => Promise<Outcome>,
): Promise<Outcome[]> {
  const begun: Promise<Outcome>[] = []
  for (const item of items) {
    if (begun.length > 0 && begun.length % startsPerTick === 0) {
      await yieldToEventLoop()
      signal.throwIfAborted()
    }
    const outcome = work(item)
    // Rethrown below, after all have started.
    outcome.catch(() => undefined)
    begun.push(outcome)
  }
  return Promise.all(begun)
}

/** A warning of the platform: of the process, or in the console where there is none. */
export function warnProcess(sentence: string, code?: string): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const how = { type: 'StatewrightWarning', ...(code !== undefined && { code }) }
  if (process?.emitWarning) process.emitWarning(sentence, how)
  // oxlint-disable-next-line no-console -- browsers have no process warnings
  else console.warn(sentence)
}

/** Code that is loaded when it is first asked for, once. What could not be loaded is tried again the next time. */
export function loadOnce<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

/**
 * Loads a package that only some need, and that is therefore not installed with Statewright.
 * @throws {StatewrightError} `missing_package`, with the command that installs it
 */
export async function loadPeer<Module>(name: string, purpose: string): Promise<Module> {
  try {
    // Not a literal: bundlers leave it alone, and types do not need the package.
    return (await import(name)) as Module
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    const installed = /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name
    throw new StatewrightError(
      'missing_package',
      `${purpose} needs the package ${installed}, which is not installed. Run: npm install ${installed}`,
      installed,
      { cause: error },
    )
  }
}
