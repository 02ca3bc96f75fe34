import type { Context, Tracer } from '@opentelemetry/api'
import type { Metrics, SemconvNames } from './otel-metrics.js'

export interface OtelKit {
  readonly tracer: Tracer
  /** Returns null without a provider. Called for each run, because a provider may be registered late. */
  readonly metrics: () => Metrics | null
  readonly names: SemconvNames
  readonly agentName: string | undefined
  readonly captureContent: boolean
}

export interface SpanPlace {
  /** The context in which the stretch's span is active. */
  readonly context: Context
  readonly agentName: string | undefined
  readonly sessionId: string
}

/** Calls every function, then throws the first error. */
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

/** Reads a monotonic clock, in milliseconds. The SDK accepts these values as span times. */
export const readMonotonicMs = (): number => performance.now()
