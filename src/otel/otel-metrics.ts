import {
  type Attributes,
  type Counter,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api'
import type { Usage } from '../../machines/agent/usage.js'
import type { SharedBudget } from '../core/budgets/shared-budget.js'

const createBoundaries = (from: number, factor: number): number[] =>
  Array.from({ length: 14 }, (_, i) => from * factor ** i)

/** The instruments. Attributes are those of the span that have a low cardinality. */
export type Metrics = ReturnType<typeof createMetrics>

export function recordUsage(
  { cost, tokens, tokenUsage }: Metrics,
  usage: Usage,
  attributes: Attributes,
): void {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens = 0, reasoningTokens } = usage
  if (usage.cost !== null && usage.cost > 0) cost.add(usage.cost, attributes)
  tokenUsage?.record(inputTokens, { ...attributes, 'gen_ai.token.type': 'input' })
  tokenUsage?.record(outputTokens, { ...attributes, 'gen_ai.token.type': 'output' })
  if (!tokens) return
  const ofText = { ...attributes, 'gen_ai.token.modality': 'text' }
  tokens.input.add(inputTokens, ofText)
  tokens.output.add(outputTokens, ofText)
  if (cachedInputTokens > 0) tokens.cacheRead.add(cachedInputTokens, ofText)
  if (cacheWriteTokens > 0) tokens.cacheWrite.add(cacheWriteTokens, ofText)
  if (reasoningTokens > 0) tokens.reasoning.add(reasoningTokens, ofText)
}

function createMetrics(provider: MeterProvider, names: SemconvNames, budgets: readonly ObservedBudget[]) {
  const meter = provider.getMeter('statewright')
  if (budgets.length > 0) observeBudgets(meter, budgets)
  const counter = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(name, { unit, description })
  const histogram = (name: string, unit: string, explicitBucketBoundaries: number[], description: string) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  const seconds = (name: string, from: number, description: string): Histogram =>
    histogram(name, 's', createBoundaries(from, 2), description)
  const calls = (name: string, unit: string, description: string): Histogram =>
    histogram(name, unit, [1, 2, 4, 8, 16, 32, 64, 128], description)
  const { tokens, tokenUsage } = names
  return {
    requestDuration: seconds(names.requestDuration, 0.01, 'Duration of model requests, per attempt.'),
    firstChunk: seconds(names.timeToFirstChunk, 0.01, 'Time to the first chunk of a streamed answer.'),
    wait: seconds(
      'statewright.limiter.wait.duration',
      0.01,
      'Time that model requests waited for a limiter, by limiter.',
    ),
    tokens: tokens && {
      input: counter(tokens.input, '{token}', 'All input, cached or not.'),
      output: counter(tokens.output, '{token}', 'All output, including reasoning.'),
      cacheRead: counter(tokens.cacheRead, '{token}', 'Input read from a cache.'),
      cacheWrite: counter(tokens.cacheWrite, '{token}', 'Input written to a cache.'),
      reasoning: counter(tokens.reasoning, '{token}', 'Reasoning output.'),
    },
    tokenUsage:
      tokenUsage === null
        ? null
        : histogram(tokenUsage, '{token}', createBoundaries(1, 4), 'Tokens used by model requests.'),
    agent: names.hasAgentMetrics
      ? {
          duration: seconds(
            'gen_ai.invoke_agent.duration',
            0.1,
            'Duration of run segments, from the start or an answer until the run rests.',
          ),
          requests: calls(
            'gen_ai.invoke_agent.inference_calls',
            '{inference_call}',
            'Model requests per run segment, including failed ones.',
          ),
          calls: calls('gen_ai.invoke_agent.tool_calls', '{tool_call}', 'Tool calls per run segment.'),
          toolCall: seconds('gen_ai.execute_tool.duration', 0.01, 'Duration of tool calls.'),
        }
      : null,
    runs: counter('statewright.runs', '{run}', 'Runs that have ended, by state and reason.'),
    guardrails: counter('statewright.guardrail.actions', '{action}', 'Guard actions, by guard and action.'),
    cost: counter('statewright.cost', 'USD', 'Cost of model requests whose price is known.'),
    approvals: counter('statewright.approvals', '{approval}', 'Resolved questions about calls, by outcome.'),
    approvalWait: seconds(
      'statewright.approval.wait.duration',
      4,
      'Time that calls waited for approval, by outcome.',
    ),
    policyDecisions: counter(
      'statewright.policy.decisions',
      '{decision}',
      'Policy decisions, by policy, decision and shadow.',
    ),
  }
}

type ObservedBudget = Pick<SharedBudget, 'id' | 'status'>

/** Each export reads the budgets. A budget whose store is unavailable has no points. */
function observeBudgets(meter: Meter, budgets: readonly ObservedBudget[]): void {
  const createGauge = (what: string, description: string) =>
    meter.createObservableGauge(`statewright.shared_budget.${what}`, { description })
  const spentGauge = createGauge('spent', 'Amount spent in this window.')
  const reservedGauge = createGauge('reserved', 'Amount reserved for requests in progress.')
  const limitGauge = createGauge('limit', 'Budget limit per window.')
  const gauges = [spentGauge, reservedGauge, limitGauge]
  meter.addBatchObservableCallback(async (result) => {
    const observe = async (budget: ObservedBudget): Promise<void> => {
      const { limits, spent, reserved } = await budget.status()
      for (const unit of ['usd', 'tokens'] as const) {
        const limit = limits[unit]
        if (limit === undefined) continue
        const attributes = { budget: budget.id, unit }
        result.observe(spentGauge, spent[unit], attributes)
        result.observe(reservedGauge, reserved[unit], attributes)
        result.observe(limitGauge, limit, attributes)
      }
    }
    await Promise.allSettled(budgets.map(observe))
  }, gauges)
}

/** Creates the metrics again when another provider is registered, because meters do not switch, unlike tracers. */
export function createMetricsLookup(
  meterProvider: MeterProvider | undefined,
  names: SemconvNames,
  budgets: readonly ObservedBudget[],
): () => Metrics | null {
  let known: { provider: MeterProvider; metrics: Metrics | null } | undefined
  return () => {
    const provider = meterProvider ?? metrics.getMeterProvider()
    if (known?.provider !== provider)
      known = { provider, metrics: isNoopProvider(provider) ? null : createMetrics(provider, names, budgets) }
    return known.metrics
  }
}

function isNoopProvider(provider: MeterProvider): boolean {
  return provider.getMeter('statewright').constructor === createNoopMeter().constructor
}

/**
 * The version of the GenAI conventions. `latest` is the version in the repository semantic-conventions-genai. `v1.41`
 * is the last version that was published with the other conventions, and many backends support it.
 */
export type Semconv = 'latest' | 'v1.41'

const usage = 'gen_ai.client.inference.usage'

/**
 * The names that differ between versions of the GenAI conventions. The conventions are still in development, and no
 * package contains the latest version. Names that both versions share are inlined.
 */
export const namesBySemconv = {
  latest: {
    cacheWrite: 'gen_ai.usage.cache_write.input_tokens',
    requestDuration: 'gen_ai.client.inference.duration',
    timeToFirstChunk: 'gen_ai.client.inference.time_to_first_chunk',
    /** Counters by kind of token. If null, one histogram counts all tokens, by `gen_ai.token.type`. */
    tokens: {
      input: `${usage}.input_tokens`,
      output: `${usage}.output_tokens`,
      cacheRead: `${usage}.cache_read.input_tokens`,
      cacheWrite: `${usage}.cache_write.input_tokens`,
      reasoning: `${usage}.reasoning.output_tokens`,
    },
    tokenUsage: null,
    hasAgentMetrics: true,
  },
  'v1.41': {
    cacheWrite: 'gen_ai.usage.cache_creation.input_tokens',
    requestDuration: 'gen_ai.client.operation.duration',
    timeToFirstChunk: 'gen_ai.client.operation.time_to_first_chunk',
    tokens: null,
    tokenUsage: 'gen_ai.client.token.usage',
    hasAgentMetrics: false,
  },
}

export type SemconvNames = (typeof namesBySemconv)[Semconv]

/** Provider names that differ between the conventions and the price table. */
const providers: Readonly<Record<string, string>> = {
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  'amazon-bedrock': 'aws.bedrock',
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  vertex: 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  moonshotai: 'moonshot_ai',
  'x-ai': 'x_ai',
  xai: 'x_ai',
}

export const getSemconvProvider = (provider: string): string => providers[provider] ?? provider
