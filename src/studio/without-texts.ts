import { MomentPacker, unpackMoment } from './pack-moments.js'
import type {
  ExportedSession,
  MomentView,
  PackedMoments,
  SessionRow,
  SessionView,
  ShownMessage,
} from './protocol.js'

/**
 * A session to share without what people, models and tools said: its states, times, counts, and the names of tools and models
 * stay. What is kept is listed here, one by one.
 */
export function withoutTexts({ chart, visits, session, moments }: ExportedSession): ExportedSession {
  return { chart, visits, session: bareSession(session), moments: bareMoments(moments) }
}

function bareSession(view: SessionView): SessionView {
  const { verdict, rows, readOnly } = view
  const { state, reason } = verdict
  return {
    ...view,
    readOnly: readOnly === null ? null : 'This file has one session, to be read.',
    session: bareRow(view.session),
    verdict: {
      ...verdict,
      text: state === null ? '' : `${toWords(state)}${reason === null ? '' : `: ${toWords(reason)}`}.`,
    },
    rows: rows.map((row) =>
      // The others name what happened, and the tools.
      row.type === 'start' ? { ...row, label: row.label.replace(/:.*/s, '') } : row,
    ),
  }
}

const toWords = (word: string): string => word.replaceAll('_', ' ').toLowerCase()

function bareRow(row: SessionRow): SessionRow {
  const { problem } = row
  return {
    ...row,
    name: null,
    title: 'A session',
    tags: {},
    holder: null,
    problem: problem === null ? null : 'The log of this session is damaged.',
  }
}

function bareMoments(packed: PackedMoments): PackedMoments {
  const packer = new MomentPacker()
  for (const { seq } of packed.moments) {
    const moment = unpackMoment(packed, seq)
    if (moment) packer.addMoment(bareMoment(moment))
  }
  return packer.packed
}

function bareMoment({ seq, transcript, record, context, guards, budget }: MomentView): MomentView {
  const { type, event } = (record ?? {}) as { type?: unknown; event?: { type?: unknown } }
  const { state, reason, steps } = (context ?? {}) as Record<string, unknown>
  return {
    seq,
    transcript: transcript.map(bareMessage),
    record: { type, ...(event && { event: { type: event.type } }) },
    context: { state, reason, steps },
    changed: [],
    guards: guards.map((guard) => ({ ...guard, evidence: '' })),
    budget,
    pending: [],
    instructions: null,
    actions: [],
  }
}

function bareMessage({ role, id, at, calls, marks }: ShownMessage): ShownMessage {
  return {
    role,
    id,
    at,
    text: role === 'assistant' && calls.length > 0 ? '' : leftOut,
    media: [],
    reasoning: '',
    calls: calls.map(({ id, name, result, status, durationMs, decision }) => ({
      id,
      name,
      arguments: '',
      result: result === null ? null : leftOut,
      media: [],
      status,
      durationMs,
      decision: decision && { seq: decision.seq, kind: decision.kind, words: '' },
    })),
    marks,
  }
}

const leftOut = '(left out)'
