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
  /** Aborted when a newer read of the chat begins, or a message joins the queue: what was read before is out of date. */
  read: AbortController
  /** The calls that were put to this page: a stream that is resumed puts them to it once more. */
  asked: Set<string>
}

const opened = new Map<string, Promise<OpenChat>>()

/** A chat stays open while the page shows another one, so that its answer goes on. */
export function openChat(id: string): Promise<OpenChat> {
  const found = opened.get(id) ?? createChat(id)
  opened.set(id, found)
  return found
}

async function createChat(id: string): Promise<OpenChat> {
  const chat: PageChat = new Chat<ChatMessage>({
    id,
    transport,
    sendAutomaticallyWhen: (given) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
      lastAssistantMessageIsCompleteWithToolCalls(given),
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      open.asked.add(toolCallId)
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
      // A request that was refused has changed nothing. After a run that has failed, the next message has its turn.
      if (!isAbort && (!isError || hasEnded(chat.messages.at(-1)))) void refresh(open)
    },
  })
  const open: OpenChat = { chat, queue: new Queue(), read: new AbortController(), asked: new Set() }
  await readChat(open)
  void follow(open)
  return open
}

export const isAtWork = ({ status }: PageChat): boolean => status === 'submitted' || status === 'streaming'

/** Reads the chat. False: a newer read has replaced this one. */
async function readChat(open: OpenChat, branch?: number): Promise<boolean> {
  const { chat, queue } = open
  open.read.abort()
  const { signal } = (open.read = new AbortController())
  const messages = await transport.readMessages(chat.id, branch === undefined ? {} : { branch })
  if (signal.aborted) return false
  queue.set(messages.filter(isQueued))
  // An answer that streams is newer than what was read.
  if (!isAtWork(chat)) chat.messages = messages.filter((message) => !isQueued(message))
  return true
}

/** Follows the answer to the last message. When there is none, waits for the turn of the next message. */
async function follow(open: OpenChat): Promise<void> {
  const { chat, queue, asked } = open
  if (isAtWork(chat)) return
  const last = chat.messages.at(-1)
  const waiting = listWaiting(last)
  if (last?.role === 'user' || waiting.some((id) => !asked.has(id))) {
    for (const id of waiting) asked.add(id)
    return chat.resumeStream()
  }
  const [next] = queue.messages
  if (waiting.length > 0 || next === undefined) return
  const { signal } = open.read
  const hasBegun = await transport.waitForTurn(chat.id, next.id, { signal }).catch(() => false)
  if (hasBegun && !signal.aborted) await refresh(open)
}

/** Reads the chat again, with its branches, and follows it. */
export async function refresh(open: OpenChat, branch?: number): Promise<void> {
  if ((await readChat(open, branch)) && branch === undefined) await follow(open)
}

/**
 * Sends a message whose turn comes when the answer has ended. The server has stored it when this resolves, and answers it
 * whether or not a page reads the response.
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
  // Its turn may have come already.
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

/** Whether an answer waits for the person. */
export const asks = (message?: ChatMessage): boolean =>
  message?.parts.some(
    (part) =>
      ('toolCallId' in part && part.state === 'approval-requested') ||
      (part.type === 'tool-pick_seat' && part.state === 'input-available'),
  ) === true

/** The calls that wait for the person or for the page. */
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
