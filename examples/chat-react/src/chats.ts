import { Chat } from '@ai-sdk/react'
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai'
import { ChatError, chatTransport, type InferUIMessage } from 'statewright/ui/client'
import type { agent } from '../agent.mjs'

export type ChatMessage = InferUIMessage<typeof agent>
export type PageChat = Chat<ChatMessage>

const transport = chatTransport<ChatMessage>({
  api: '/api/chat',
  // page.css shows a line while the server is away.
  onConnection: (state) => {
    document.documentElement.dataset.connection = state
  },
})

export const isLost = (error: Error | undefined): boolean =>
  error instanceof ChatError && error.code === 'connection_lost'

export const isQueued = ({ metadata }: ChatMessage): boolean => metadata?.queued === true

const opened = new Map<string, Promise<PageChat>>()

/** A chat stays open while the page shows another one, so that its answer goes on. */
export function openChat(id: string): Promise<PageChat> {
  const chat = opened.get(id) ?? createChat(id)
  opened.set(id, chat)
  return chat
}

async function createChat(id: string): Promise<PageChat> {
  const outputs: (() => void)[] = []
  const chat: PageChat = new Chat({
    id,
    transport,
    messages: await transport.readMessages(id),
    // Queued messages stand behind the answer whose calls are answered.
    sendAutomaticallyWhen: ({ messages }) => {
      const said = { messages: messages.filter((message) => !isQueued(message)) }
      return (
        lastAssistantMessageIsCompleteWithApprovalResponses(said) ||
        lastAssistantMessageIsCompleteWithToolCalls(said)
      )
    },
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => {
      if (toolName !== 'local_time') return
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
      const output = { time: new Date().toString(), timeZone }
      // Added when the step has been read: the chat then knows which message it answers, whatever is queued behind it.
      outputs.push(() => void chat.addToolOutput({ tool: toolName, toolCallId, output }))
    },
    onFinish: ({ isAbort, isError }) => {
      if (isAbort || isError) return
      if (outputs.length === 0) void refresh(chat)
      for (const add of outputs.splice(0)) add()
    },
  })
  return chat
}

/** Reads the chat again, and follows the answer of a message whose turn has come. */
export async function refresh(chat: PageChat): Promise<void> {
  chat.messages = await transport.readMessages(chat.id)
  const isBusy = chat.status === 'submitted' || chat.status === 'streaming'
  const last = chat.messages.findLast((message) => !isQueued(message))
  const isNext = last?.role === 'user' || (chat.messages.some(isQueued) && !asks(last))
  if (isNext && !isBusy) await chat.resumeStream()
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
