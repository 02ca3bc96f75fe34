import type { OpenAI } from 'openai'
import type { JsonObject } from '../../../../../machines/agent/json.js'
import { checkSharedOptions, clientPhrase, type OpenAIOptions, createOptionError } from '../openai-options.js'

/** Where the model is and how to talk to it. */
export interface OpenAIResponsesOptions extends OpenAIOptions {
  /**
   * Tools that the provider itself runs, as its API describes them: `{ type: 'web_search' }`, `code_interpreter`,
   * `file_search`, `mcp`, … They stand behind the agent's own. Tools that want their results from you are none.
   */
  hostedTools?: readonly JsonObject[] | undefined
  /** Whether, and how long, the model sums up for people what it thinks. Default: it does not. */
  reasoningSummary?: 'auto' | 'concise' | 'detailed' | undefined
  /**
   * Whether reasoning is asked for in its encrypted form, so that it can go back. Default: yes, but for OpenAI's models that
   * do not reason (gpt-4o, gpt-4.1, …), which refuse it.
   */
  encryptedReasoning?: boolean | undefined
}

const summaryValues: unknown[] = [undefined, 'auto', 'concise', 'detailed']

/** @throws ConfigError for options that no request could be made with. */
export function checkResponsesOptions(options: OpenAIResponsesOptions): void {
  const invalid = createOptionError('openaiResponses')
  checkSharedOptions(options, invalid)
  const { client, hostedTools, reasoningSummary, encryptedReasoning } = options
  if (client !== undefined && typeof (client as Partial<OpenAI>).responses?.create !== 'function')
    throw invalid('client', `${clientPhrase.slice(0, -1)}, of a version that has responses.create.`)
  if (hostedTools !== undefined && !(Array.isArray(hostedTools) && hostedTools.every(isHostedTool)))
    throw invalid('hostedTools', "must be a list of tools with a type, such as [{ type: 'web_search' }].")
  const own = hostedTools?.find(({ type }) => type === 'function')
  if (own !== undefined)
    throw invalid('hostedTools', 'must not have functions: give these to the agent, as tools.')
  if (!summaryValues.includes(reasoningSummary))
    throw invalid('reasoningSummary', 'must be auto, concise or detailed.')
  if (encryptedReasoning !== undefined && typeof encryptedReasoning !== 'boolean')
    throw invalid('encryptedReasoning', 'must be true or false.')
}

function isHostedTool(tool: unknown): boolean {
  return typeof (tool as { type?: unknown } | null)?.type === 'string'
}
