import { Chat } from '@ai-sdk/react'
import {
  generateId,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai'
import { ChatError, chatTransport, type InferUIMessage } from 'statewright/ui/client'
import type { agent } from '../agent.mjs'

export type ChatMessage = InferUIMessage<typeof agent>
export type PageChat = Chat<ChatMessage>

const api = '/api/chat'

export const transport = chatTransport<ChatMessage>({
  api,
  // page.css shows a line while the server is away.
  onConnection: (state) => {
    document.documentElement.dataset.connection = state
  },
})

export const isLost = (error: Error | undefined): boolean =>
  error instanceof ChatError && error.code === 'connection_lost'

const isQueued = ({ metadata }: ChatMessage): boolean => metadata?.queued === true

/** The messages that wait for their turn. `useChat` does not have them: it answers calls of its last message only. */
class Queue {
  messages: readonly ChatMessage[] = []
  readonly #listeners = new Set<() => void>()

  set(messages: readonly ChatMessage[]): void {
    this.messages = messages
    for (const listener of this.#listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

export interface OpenChat {
  chat: PageChat
  queue: Queue
}

const opened = new Map<string, Promise<OpenChat>>()

/** A chat stays open while the page shows another one, so that its answer goes on. */
export function openChat(id: string): Promise<OpenChat> {
  const found = opened.get(id) ?? createChat(id)
  opened.set(id, found)
  return found
}

async function createChat(id: string): Promise<OpenChat> {
  const messages = await transport.readMessages(id)
  const queue = new Queue()
  queue.set(messages.filter(isQueued))
  const chat: PageChat = new Chat({
    id,
    transport,
    messages: messages.filter((message) => !isQueued(message)),
    sendAutomaticallyWhen: (given) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
      lastAssistantMessageIsCompleteWithToolCalls(given),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName !== 'local_time') return
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
      // Not awaited: it is sent when the step has been read.
      void chat.addToolOutput({
        tool: toolName,
        toolCallId,
        output: { time: new Date().toString(), timeZone },
      })
    },
    onFinish: ({ isAbort, isError }) => {
      if (!isAbort && !isError) void refresh({ chat, queue })
    },
  })
  return { chat, queue }
}

export const isAtWork = ({ status }: PageChat): boolean => status === 'submitted' || status === 'streaming'

/** Reads the chat again, with its branches, and follows the answer of a message whose turn has come. */
export async function refresh({ chat, queue }: OpenChat, branch?: number): Promise<void> {
  const messages = await transport.readMessages(chat.id, branch === undefined ? {} : { branch })
  queue.set(messages.filter(isQueued))
  // The next step has begun, for example with an answer of the page.
  if (isAtWork(chat)) return
  chat.messages = messages.filter((message) => !isQueued(message))
  const last = chat.messages.at(-1)
  const isNext = last?.role === 'user' || (queue.messages.length > 0 && !asks(last))
  if (isNext && branch === undefined) await chat.resumeStream()
}

/**
 * Sends a message whose turn comes when the answer has ended. The server has stored it when this resolves, and answers it
 * whether or not a page reads the response.
 */
export async function queueMessage({ chat, queue }: OpenChat, parts: ChatMessage['parts']): Promise<void> {
  const message: ChatMessage = { id: generateId(), role: 'user', parts, metadata: { queued: true } }
  const response = await fetch(api, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-ai-sdk': '7' },
    body: JSON.stringify({ id: chat.id, messages: [message] }),
  })
  if (!response.ok) throw new Error((await response.json()).error.message)
  void response.body?.cancel()
  queue.set([...queue.messages, message])
  // Its turn may have come already.
  if (!isAtWork(chat)) await refresh({ chat, queue })
}

/** Whether an answer waits for the person. */
export const asks = (message?: ChatMessage): boolean =>
  message?.parts.some(
    (part) =>
      ('toolCallId' in part && part.state === 'approval-requested') ||
      (part.type === 'tool-pick_seat' && part.state === 'input-available'),
  ) === true

export interface ListedChat {
  id: string
  title: string
}

export async function listChats(): Promise<ListedChat[]> {
  const response = await fetch('/api/chats')
  return response.ok ? response.json() : []
}
