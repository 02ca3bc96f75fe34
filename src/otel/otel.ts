import { type MeterProvider, trace, type TracerProvider } from '@opentelemetry/api'
import { ConfigError } from '../core/base/errors.js'
import { checkBudgetList, type SharedBudget } from '../core/budgets/shared-budget.js'
import type { Telemetry } from '../core/telemetry/telemetry.js'
import { createMetricsLookup, namesBySemconv, type Semconv } from './otel-metrics.js'
import { RunSpans } from './run-spans.js'

export interface OtelOptions {
  /** `gen_ai.agent.name`, and part of span names. A sub-agent has the name of its tool. None by default. */
  agentName?: string
  /**
   * Whether spans contain text of people, models and tools. Content withheld by shields and secrets are always omitted.
   * At most 32,000 characters per attribute. Default: false, unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
   * is SPAN_ONLY, SPAN_AND_EVENT or true.
   */
  captureContent?: boolean
  /** The version of the GenAI conventions for spans and metrics. Default: `latest`. */
  semconv?: Semconv
  /** Shared budgets whose spent, reserved and allowed amounts are gauges, from the first run on. None by default. */
  budgets?: readonly SharedBudget[]
  /** Defaults to the provider registered with `@opentelemetry/api`. */
  tracerProvider?: TracerProvider
  /** Defaults to the provider registered with `@opentelemetry/api`. */
  meterProvider?: MeterProvider
}

const optionNames = ['agentName', 'captureContent', 'semconv', 'budgets', 'tracerProvider', 'meterProvider']
const captureVariable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

/**
 * OpenTelemetry spans and metrics of an agent's runs, by the GenAI conventions. Register an SDK as usual. Runs continue
 * unchanged without an SDK or if it fails. See docs/telemetry.md.
 *
 * @example
 * import { otel } from 'statewright/otel'
 *
 * const agent = createAgent({ model, tools: [add], telemetry: otel({ agentName: 'analyst' }) })
 * @throws {ConfigError} `invalid_option`
 */
export function otel(options: OtelOptions = {}): Telemetry {
  const { agentName, semconv = 'latest', tracerProvider, meterProvider } = checkOtelOptions(options)
  const names = namesBySemconv[semconv]
  const kit = {
    tracer: (tracerProvider ?? trace).getTracer('statewright'),
    metrics: createMetricsLookup(meterProvider, names, options.budgets ?? []),
    names,
    agentName,
    captureContent: options.captureContent ?? isCaptureEnabled(),
  }
  return { begin: (run) => new RunSpans(kit, run) }
}

function isCaptureEnabled(): boolean {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  const asked = process?.env?.[captureVariable]?.toUpperCase() ?? ''
  return ['SPAN_ONLY', 'SPAN_AND_EVENT', 'TRUE'].includes(asked)
}

function checkOtelOptions(options: OtelOptions): OtelOptions {
  if (typeof options !== 'object' || (options as unknown) === null)
    throw new ConfigError(
      'invalid_option',
      'otel takes an object: { agentName, captureContent, semconv, … }.',
    )
  for (const key of Object.keys(options)) {
    if (!optionNames.includes(key))
      throw otelOptionError(key, `there is no option '${key}'. The options are ${optionNames.join(', ')}.`)
  }
  const { agentName, captureContent, semconv, tracerProvider, meterProvider } = options
  if (agentName !== undefined && (typeof agentName !== 'string' || agentName === ''))
    throw otelOptionError('agentName', 'agentName must be a non-empty string.')
  if (captureContent !== undefined && typeof captureContent !== 'boolean')
    throw otelOptionError('captureContent', 'captureContent must be true or false.')
  if (semconv !== undefined && !Object.hasOwn(namesBySemconv, semconv))
    throw otelOptionError(
      'semconv',
      `semconv must be one of ${Object.keys(namesBySemconv)
        .map((name) => `'${name}'`)
        .join(', ')}.`,
    )
  if (options.budgets !== undefined) checkBudgetList(options.budgets, 'budgets')
  if (tracerProvider !== undefined && typeof tracerProvider?.getTracer !== 'function')
    throw otelOptionError(
      'tracerProvider',
      'tracerProvider must have getTracer(), as those of the OpenTelemetry SDK.',
    )
  if (meterProvider !== undefined && typeof meterProvider?.getMeter !== 'function')
    throw otelOptionError(
      'meterProvider',
      'meterProvider must have getMeter(), as those of the OpenTelemetry SDK.',
    )
  return options
}

function otelOptionError(key: string, problem: string): ConfigError {
  return new ConfigError('invalid_option', `otel: ${problem}`, key)
}
