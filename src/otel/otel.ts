import { type MeterProvider, trace, type TracerProvider } from '@opentelemetry/api'
import { ConfigError } from '../core/base/errors.js'
import type { Telemetry } from '../core/telemetry/telemetry.js'
import { metricsOf } from './metrics.js'
import { namesOf, type Semconv } from './names.js'
import { RunSpans } from './run-spans.js'

/** How runs are measured. */
export interface OtelOptions {
  /** `gen_ai.agent.name`, and part of the spans' names. A sub-agent has the name of its tool. Default: none. */
  agentName?: string
  /**
   * Whether spans carry what people, models and tools have said: never what shields withhold, secrets scrubbed, at most 32,000
   * characters an attribute. Default: false, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says SPAN_ONLY,
   * SPAN_AND_EVENT or true.
   */
  captureContent?: boolean
  /** Which version of the GenAI conventions names spans and metrics. Default: `latest`. */
  semconv?: Semconv
  /** Default: the one that is registered with `@opentelemetry/api`. */
  tracerProvider?: TracerProvider
  /** Default: as above. */
  meterProvider?: MeterProvider
}

const keys = ['agentName', 'captureContent', 'semconv', 'tracerProvider', 'meterProvider']
const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

/**
 * OpenTelemetry's spans and metrics of an agent's runs, by the GenAI conventions. Register an SDK as for the rest of your
 * program: without one, or with one that fails, runs go on as they are. See docs/telemetry.md.
 *
 * @example
 * import { otel } from 'statewright/otel'
 *
 * const agent = createAgent({ model, tools: [add], telemetry: otel({ agentName: 'analyst' }) })
 * @throws {ConfigError} `invalid_option`
 */
export function otel(options: OtelOptions = {}): Telemetry {
  const { agentName, semconv = 'latest', tracerProvider, meterProvider } = checked(options)
  const names = namesOf[semconv]
  const kit = {
    tracer: (tracerProvider ?? trace).getTracer('statewright'),
    metrics: metricsOf(meterProvider, names),
    names,
    agentName,
    captureContent: options.captureContent ?? isCapturing(),
  }
  return { begin: (run) => new RunSpans(kit, run) }
}

function isCapturing(): boolean {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  const asked = process?.env?.[variable]?.toUpperCase() ?? ''
  return ['SPAN_ONLY', 'SPAN_AND_EVENT', 'TRUE'].includes(asked)
}

function checked(options: OtelOptions): OtelOptions {
  if (typeof options !== 'object' || (options as unknown) === null)
    throw new ConfigError(
      'invalid_option',
      'otel takes an object: { agentName, captureContent, semconv, … }.',
    )
  for (const key of Object.keys(options)) {
    if (!keys.includes(key))
      throw invalid(key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
  }
  const { agentName, captureContent, semconv, tracerProvider, meterProvider } = options
  if (agentName !== undefined && (typeof agentName !== 'string' || agentName === ''))
    throw invalid('agentName', 'agentName must be a text that is not empty.')
  if (captureContent !== undefined && typeof captureContent !== 'boolean')
    throw invalid('captureContent', 'captureContent must be true or false.')
  if (semconv !== undefined && !Object.hasOwn(namesOf, semconv))
    throw invalid(
      'semconv',
      `semconv must be one of ${Object.keys(namesOf)
        .map((name) => `'${name}'`)
        .join(', ')}.`,
    )
  if (tracerProvider !== undefined && typeof tracerProvider?.getTracer !== 'function')
    throw invalid(
      'tracerProvider',
      'tracerProvider must have getTracer(), as those of the OpenTelemetry SDK.',
    )
  if (meterProvider !== undefined && typeof meterProvider?.getMeter !== 'function')
    throw invalid('meterProvider', 'meterProvider must have getMeter(), as those of the OpenTelemetry SDK.')
  return options
}

function invalid(key: string, problem: string): ConfigError {
  return new ConfigError('invalid_option', `otel: ${problem}`, key)
}
