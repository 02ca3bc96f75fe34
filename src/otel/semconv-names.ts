/**
 * The names of the GenAI conventions that the versions differ in. They are still in development, and no package has the
 * newest, so they are kept here. What both have in common stands where it is used.
 */
export interface SemconvNames {
  /** Attributes of a request to a model. */
  cacheWrite: string
  /** Histograms of requests to models, in seconds. */
  requestDuration: string
  timeToFirstChunk: string
  /** Counters of tokens, by what is counted; null: one histogram counts all, see `tokenUsage`. */
  tokens: Readonly<Record<'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'reasoning', string>> | null
  /** A histogram of tokens, told apart by `gen_ai.token.type`. */
  tokenUsage: string | null
  /** Whether there are histograms of agents and tools. */
  hasAgentMetrics: boolean
}

/**
 * Which version of the GenAI conventions names things: `latest` is that of the repository semantic-conventions-genai, `v1.41`
 * the last that was published with all the others, which many backends know.
 */
export type Semconv = 'latest' | 'v1.41'

const usage = 'gen_ai.client.inference.usage'

export const namesBySemconv: Readonly<Record<Semconv, SemconvNames>> = {
  latest: {
    cacheWrite: 'gen_ai.usage.cache_write.input_tokens',
    requestDuration: 'gen_ai.client.inference.duration',
    timeToFirstChunk: 'gen_ai.client.inference.time_to_first_chunk',
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

/** What the conventions call providers that are called otherwise where prices are kept. */
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

export function getSemconvProvider(provider: string): string {
  return providers[provider] ?? provider
}
