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
  // page.css shows a notice while the server is unavailable.
  onConnection: (state) => {
    document.documentElement.dataset.connection = state
  },
})

export const isLost = (error: Error | undefined): boolean =>
  error instanceof ChatError && error.code === 'connection_lost'

const isQueued = ({ metadata }: ChatMessage): boolean => metadata?.queued === true

/** The queued messages. They are not in `useChat`, because it can answer calls only in its last message. */
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
  /** Aborted when the chat is read again or a message is queued, because earlier data is then outdated. */
  read: AbortController
  /** The calls that this page has received. A resumed stream sends them again. */
  askedIds: Set<string>
}

const opened = new Map<string, Promise<OpenChat>>()

/** A chat stays open while the page shows another one, so that its answer continues. */
export function openChat(id: string): Promise<OpenChat> {
  const found = opened.get(id) ?? createChat(id)
  opened.set(id, found)
  return found
}

async function createChat(id: string): Promise<OpenChat> {
  const chat: PageChat = new Chat<ChatMessage>({
    id,
    transport,
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      open.askedIds.add(toolCallId)
      if (toolName !== 'local_time') return
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
      // Not awaited, because it is sent after the step has been read.
      void chat.addToolOutput({
        tool: toolName,
        toolCallId,
        output: { time: new Date().toString(), timeZone },
      })
    },
    onFinish: ({ isAbort, isError }) => {
      // A rejected request changes nothing. After a failed run, the next message is processed.
      if (!isAbort && (!isError || hasEnded(chat.messages.at(-1)))) void refresh(open)
    },
  })
  const open: OpenChat = { chat, queue: new Queue(), read: new AbortController(), askedIds: new Set() }
  await readChat(open)
  void follow(open)
  return open
}

export const isAtWork = ({ status }: PageChat): boolean => status === 'submitted' || status === 'streaming'

/** Reads the chat. Returns false if a newer read has replaced this one. */
async function readChat(open: OpenChat, branch?: number): Promise<boolean> {
  const { chat, queue } = open
  open.read.abort()
  const { signal } = (open.read = new AbortController())
  const messages = await transport.readMessages(chat.id, branch === undefined ? {} : { branch })
  if (signal.aborted) return false
  queue.set(messages.filter(isQueued))
  // A streaming answer is newer than the data that was read.
  if (!isAtWork(chat)) chat.messages = messages.filter((message) => !isQueued(message))
  return true
}

/** Follows the answer to the last message. If there is none, waits until the next queued message is processed. */
async function follow(open: OpenChat): Promise<void> {
  const { chat, queue, askedIds } = open
  if (isAtWork(chat)) return
  const last = chat.messages.at(-1)
  const waiting = listWaiting(last)
  if (last?.role === 'user' || waiting.some((id) => !askedIds.has(id))) {
    for (const id of waiting) askedIds.add(id)
    return chat.resumeStream()
  }
  const [next] = queue.messages
  if (waiting.length > 0 || next === undefined) return
  const { signal } = open.read
  const hasStarted = await transport.waitForTurn(chat.id, next.id, { signal }).catch(() => false)
  if (hasStarted && !signal.aborted) await refresh(open)
}

/** Reads the chat again, with its branches, and follows it. */
export async function refresh(open: OpenChat, branch?: number): Promise<void> {
  if ((await readChat(open, branch)) && branch === undefined) await follow(open)
}

/**
 * Queues a message that the server answers after the current answer. When this resolves, the server has stored the message, and
 * answers it even if no page reads the response.
 */
export async function queueMessage(open: OpenChat, parts: ChatMessage['parts']): Promise<void> {
  const { chat, queue } = open
  const message: ChatMessage = { id: generateId(), role: 'user', parts, metadata: { queued: true } }
  const response = await fetch(api, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-ai-sdk': '7' },
    body: JSON.stringify({ id: chat.id, messages: [message] }),
  })
  if (!response.ok) throw new Error((await response.json()).error.message)
  void response.body?.cancel()
  open.read.abort()
  queue.set([...queue.messages, message])
  // The message may already be in progress.
  if (!isAtWork(chat)) await refresh(open)
}

interface End {
  type: string
  state: string
  message?: string
}

export const readEnd = (part: ChatMessage['parts'][number]): End | undefined => {
  const end = part.type === 'data-statewright' ? (part.data as End) : undefined
  return end?.type === 'run_ended' ? end : undefined
}

/** Whether a limit, a guard, a person or a failure ended the answer. */
export const hasEnded = (message?: ChatMessage): boolean => message?.parts.some(readEnd) === true

/** Whether an answer is waiting for the user. */
export const asks = (message?: ChatMessage): boolean =>
  message?.parts.some(
    (part) =>
      ('toolCallId' in part && part.state === 'approval-requested') ||
      (part.type === 'tool-pick_seat' && part.state === 'input-available'),
  ) === true

/** The calls that are waiting for the user or the page. */
const listWaiting = (message?: ChatMessage): string[] =>
  (message?.parts ?? []).flatMap((part) =>
    'toolCallId' in part && /^(approval-requested|input-available)$/.test(part.state)
      ? [part.toolCallId]
      : [],
  )

export interface ListedChat {
  id: string
  title: string
}

export async function listChats(): Promise<ListedChat[]> {
  const response = await fetch('/api/chats')
  document.documentElement.dataset['rehearsal'] = response.headers.get('x-rehearsal') ?? ''
  return response.ok ? response.json() : []
}
