import type { Context, Tracer } from '@opentelemetry/api'
import type { Metrics, SemconvNames } from './otel-metrics.js'

/** What all runs that one `otel()` measures have in common. */
export interface OtelKit {
  readonly tracer: Tracer
  /** Looked up for each run: a provider may be registered late. Null: there is none. */
  readonly metrics: () => Metrics | null
  readonly names: SemconvNames
  readonly agentName: string | undefined
  readonly captureContent: boolean
}

/** Where the spans of a run's work have their place: in the stretch that is under way. */
export interface SpanPlace {
  /** With the span of the stretch as the active one. */
  readonly context: Context
  readonly agentName: string | undefined
  readonly sessionId: string
}

/** Each of them, also where one throws; the first that was thrown is thrown. */
export function forEachThenThrow<T>(all: Iterable<T>, act: (one: T) => void): void {
  let thrown: { error: unknown } | undefined
  for (const one of all) {
    try {
      act(one)
    } catch (error) {
      thrown ??= { error }
    }
  }
  if (thrown) throw thrown.error
}

/** Milliseconds of a clock that never goes back; the SDK takes them as times of spans, too. */
export const readMonotonicMs = (): number => performance.now()
