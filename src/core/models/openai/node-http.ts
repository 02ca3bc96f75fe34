import type * as Http from 'node:http'
import type * as Https from 'node:https'
import type { pipeline } from 'node:stream'
import type * as Zlib from 'node:zlib'

/** Node's own modules, with all instrumentation and mocks. */
export interface NodeHttp {
  readonly http: typeof Http
  readonly https: typeof Https
  /** Loaded when an answer is compressed. */
  zlib(): typeof Zlib
  pipeline(): typeof pipeline
}

/** What tells one JavaScript platform from another. */
interface Platform {
  process?: Partial<Pick<NodeJS.Process, 'release' | 'versions' | 'getBuiltinModule'>> & { type?: string }
  document?: unknown
  Deno?: unknown
  EdgeRuntime?: unknown
  navigator?: { userAgent?: string }
  fetch?: unknown
}

let nodeModules: NodeHttp | null | undefined

/**
 * Node's HTTP modules, for requests that need not go through `fetch`; null on every other platform, on a Node that cannot
 * load them at run time, and where the app has put a `fetch` or a dispatcher of its own in the place of Node's, which
 * they want to be used. Asked for each request: a test or a tracer may do so later. No import names the modules, so
 * that the code bundles for browsers.
 */
export function findNodeHttp(): NodeHttp | null {
  const modules = getNodeHttp()
  return modules !== null && usesNodeFetch() ? modules : null
}

/** Node's HTTP modules, whichever `fetch` the app uses; null on every other platform. */
export function getNodeHttp(): NodeHttp | null {
  if (nodeModules === undefined) nodeModules = loadNodeHttp()
  return nodeModules
}

function loadNodeHttp(): NodeHttp | null {
  const { process, document, Deno, EdgeRuntime, navigator }: Platform = globalThis
  const isNode = process?.release?.name === 'node' && process.versions?.bun === undefined
  const isOther = [document, Deno, EdgeRuntime].some((mark) => mark !== undefined)
  if (!isNode || isOther || process.type === 'renderer') return null
  if (navigator?.userAgent === 'Cloudflare-Workers') return null
  // There since Node 20.16; older ones use fetch.
  const load = process.getBuiltinModule
  if (typeof load !== 'function') return null
  return {
    http: load('node:http'),
    https: load('node:https'),
    zlib: () => load('node:zlib'),
    pipeline: () => load('node:stream').pipeline,
  }
}

/** Node's `fetch` is a few lines around the undici that it has built in. */
const nodeFetchSource = /undici/

let knownFetch: unknown
let knownDispatcher: unknown
let isNodeFetch = false

/** Looks again when either has changed. */
function usesNodeFetch(): boolean {
  const { fetch }: Platform = globalThis
  const dispatcher: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  if (!isNodeFetch || fetch !== knownFetch || dispatcher !== knownDispatcher) {
    knownFetch = fetch
    knownDispatcher = dispatcher
    isNodeFetch =
      typeof fetch === 'function' &&
      nodeFetchSource.test(Function.prototype.toString.call(fetch)) &&
      isPlainAgent(dispatcher)
  }
  return isNodeFetch
}

/** Whether it is the agent that Node makes when fetch is first used: one without any setting of its own. */
function isPlainAgent(dispatcher: unknown): boolean {
  if (dispatcher === undefined) return true
  if (typeof dispatcher !== 'object' || dispatcher === null) return false
  const prototype: unknown = Object.getPrototypeOf(dispatcher)
  const isAgent = (prototype as { constructor?: { name?: unknown } } | null)?.constructor?.name === 'Agent'
  // A composed agent is the same object with another `dispatch`.
  const isComposed = Reflect.get(dispatcher, 'dispatch') !== Reflect.get(Object(prototype), 'dispatch')
  const key = Object.getOwnPropertySymbols(dispatcher).find((symbol) => symbol.description === 'options')
  if (!isAgent || isComposed || key === undefined) return false
  const settings: unknown[] = Object.values(Object(Reflect.get(dispatcher, key)))
  return settings.every((value) => value === undefined || value === Infinity)
}
