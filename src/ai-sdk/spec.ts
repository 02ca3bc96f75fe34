import type { Json, JsonObject } from '../../machines/agent/json.js'

/** The call options of the specifications v2, v3 and v4. Some values have the format of the model's version. */
export interface CallOptions {
  prompt: PromptMessage[]
  maxOutputTokens?: number
  temperature?: number
  topP?: number
  presencePenalty?: number
  frequencyPenalty?: number
  stopSequences?: string[]
  seed?: number
  responseFormat?: { type: 'json'; schema: JsonObject; name: string }
  tools?: CallTool[]
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string }
  /** The reasoning effort. Only in v4. */
  reasoning?: string
  headers?: Record<string, string>
  providerOptions?: ProviderData
  abortSignal?: AbortSignal
  includeRawChunks?: boolean
}

export type ProviderData = Record<string, JsonObject>

export type CallTool =
  | { type: 'function'; name: string; description: string; inputSchema: JsonObject }
  | { type: 'provider' | 'provider-defined'; id: string; name: string; args: JsonObject }

export type PromptMessage =
  | { role: 'system'; content: string; providerOptions?: ProviderData }
  | { role: 'user'; content: PromptPart[] }
  | { role: 'assistant'; content: PromptPart[] }
  | { role: 'tool'; content: PromptPart[] }

export type PromptPart =
  | { type: 'text'; text: string; providerOptions?: ProviderData }
  | { type: 'reasoning'; text: string; providerOptions?: ProviderData }
  | {
      type: 'file' | 'reasoning-file'
      mediaType: string
      data: FileData
      filename?: string
      providerOptions?: ProviderData
    }
  | { type: 'custom'; kind: string; providerOptions?: ProviderData }
  | {
      type: 'tool-call'
      toolCallId: string
      toolName: string
      input: Json
      providerExecuted?: true
      providerOptions?: ProviderData
    }
  | {
      type: 'tool-result'
      toolCallId: string
      toolName: string
      output: Json
      providerOptions?: ProviderData
    }

/** Data is plain in v2 and v3, and tagged in v4. */
export type FileData =
  | string
  | URL
  | { type: 'data'; data: string }
  | { type: 'url'; url: URL }
  | { type: 'reference'; reference: Record<string, string> }
