import type { Cell } from './play.js'
import type { Deed, Who } from './surface.js'
import { type AgentKind, closedStandings, type Standing } from './world.js'

/** The required outcome of the matching cells, and the reason. The first matching rule applies. */
export interface Rule {
  /** The prefix of a surface's name, as returned by `nameOfSurface`. */
  of?: string | string[]
  does?: Deed | Deed[]
  who?: Who | Who[]
  agent?: AgentKind | AgentKind[]
  sessionState?: Standing | Standing[]
  comes: string
  because: string
}

const pages = ['chatHandler', 'aguiHandler']
const tells = ['agent.send', 'restateSessions.send']
const anotherAnswer = ['chatHandler.send (another answer)', 'aguiHandler.send (another answer)']
const foreign: AgentKind[] = ['other agent', 'other version', 'unnamed agent']
const held: Standing[] = ['held elsewhere', 'left by its holder']
const closed: Standing[] = [...closedStandings]
const open: Standing[] = ['waiting', 'interrupted', 'poisoned']
const atWork: Standing[] = ['interrupted', 'poisoned', ...held]
const later = 'a queue keeps what cannot be done here or now, for another process or another time'

export const rules: Rule[] = [
  {
    of: 'durable',
    does: 'begin',
    sessionState: 'new',
    comes: 'taken up',
    because: 'the session of a machine starts where there is none',
  },
  {
    of: 'durable',
    sessionState: 'new',
    comes: 'refused: unknown_session',
    because: 'there is no session to send to',
  },
  {
    of: 'durable',
    comes: 'refused: other_session',
    because: 'a machine cannot take the session of an agent',
  },
  // The requester's identity is checked first.
  { who: 'nobody', comes: 'refused: unauthorized', because: 'authorize knows no person by this request' },
  {
    of: 'chatHandler.send (an approval with a grant)',
    comes: 'refused: invalid_input',
    because: 'a page approves the call that it shows, and no later ones',
  },
  {
    of: 'aguiHandler.send (an approval with a grant)',
    who: ['owner', 'reader'],
    sessionState: ['waiting', ...closed],
    comes: 'refused: invalid_input',
    because: 'a page approves the call that it shows, and no later ones',
  },
  {
    of: 'mcpServer (an approval with a grant)',
    who: ['owner', 'reader'],
    sessionState: ['waiting', ...closed],
    comes: 'refused: -32602',
    because: 'a form approves one call',
  },
  {
    of: 'mcpServer (a forged state)',
    comes: 'refused: unknown_task',
    because: 'the state of a call is a random value that only the sender of the call has received',
  },
  {
    who: 'stranger',
    does: ['begin', 'call again'],
    comes: 'begun elsewhere',
    because: 'what a person calls a chat is a session of that person',
  },
  {
    who: 'stranger',
    of: 'mcpServer',
    comes: 'refused: unknown_task',
    because: 'a stranger has no such task',
  },
  {
    who: 'stranger',
    of: 'chatHandler',
    does: 'answer',
    comes: 'refused: unknown_call',
    because: 'a stranger has no such question',
  },
  {
    who: 'stranger',
    of: 'aguiHandler',
    does: 'answer',
    comes: 'refused: unknown_session',
    because: 'a stranger has no such thread',
  },
  {
    who: 'stranger',
    does: ['branch', 'turn back'],
    comes: 'refused: unknown_session',
    because: 'a stranger has no such chat',
  },
  { who: 'stranger', comes: 'nothing', because: 'a stranger has no such session' },

  // Grants: whoever can send messages to a session can give and revoke them, in any state. Engines repeat their
  // answers, and a message for many sessions names no tool of theirs, so both refuse grants.
  {
    does: ['grant', 'revoke'],
    of: ['runSession', 'dbosSessions.answer', 'sendAll'],
    comes: 'refused: invalid_input',
    because: 'answers and messages for many sessions neither give nor revoke grants',
  },
  {
    does: 'grant',
    of: 'statewright',
    comes: 'refused: exit 2',
    because: 'the command line cannot give a grant',
  },
  {
    does: ['grant', 'revoke'],
    of: 'statewright',
    sessionState: 'new',
    comes: 'refused: exit 2',
    because: 'there is no such session',
  },
  {
    does: ['grant', 'revoke'],
    sessionState: 'new',
    comes: 'refused: unknown_session',
    because: 'there is no such session',
  },
  { does: 'grant', comes: 'told, grant given', because: 'the next process that works on it reads it' },
  { does: 'revoke', comes: 'told, grant revoked', because: 'the next process that works on it reads it' },
  {
    of: ['agent.send (an approval with a grant)', 'dbosSessions.answer (an approval with a grant)'],
    agent: foreign,
    sessionState: 'waiting',
    comes: 'told, grant given',
    because: 'the process that goes on with it reads it',
  },
  {
    of: 'agent.send (an approval with a grant)',
    sessionState: 'waiting',
    comes: 'told, grant given',
    because: 'the process that goes on with it reads it',
  },
  {
    of: 'runSession (an approval with a grant)',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'interrupted',
    comes: 'gone on, grant given',
    because: 'the answer is for the next rest',
  },
  {
    of: [
      'runSession (an approval with a grant)',
      'dbosSessions.answer (an approval with a grant)',
      'studio.answers (approve, with a grant)',
    ],
    agent: ['right agent', 'accepting agent'],
    sessionState: 'waiting',
    comes: 'gone on, grant given',
    because: 'it has its answer, which also approves later calls',
  },

  // Other people must approve, or the sender has: the answer is refused before it is stored.
  {
    of: ['runSession', 'createSessionRunner'],
    agent: foreign,
    sessionState: closed,
    comes: 'refused: stranded',
    because: 'another agent, another version and an agent without a name must not go on with it',
  },
  {
    of: ['runSession', 'createSessionRunner', 'mcpServer'],
    does: 'answer',
    sessionState: 'waiting for one more',
    comes: 'nothing',
    because: 'an engine or a client repeats its answers, and this one is in the log',
  },
  {
    of: 'mcpServer',
    does: 'answer',
    sessionState: 'waiting for others',
    comes: 'refused: -32602',
    because: 'other people may approve it',
  },
  {
    of: 'chatHandler.send (an output)',
    sessionState: closed,
    comes: 'refused: unknown_call',
    because: 'the call waits for a person, and a page must not say what came of it',
  },
  {
    of: 'aguiHandler.send (an output)',
    sessionState: closed,
    comes: 'refused: waiting_for_answers',
    because: 'the call waits for a person, and a page must not say what came of it',
  },
  {
    of: 'studio.answers (toolOutput)',
    sessionState: closed,
    comes: 'refused: unknown_call',
    because: 'no output is waited for',
  },
  {
    of: 'studio.answers (reply)',
    sessionState: closed,
    comes: 'refused: wrong_state',
    because: 'no message is waited for',
  },
  {
    of: 'statewright',
    sessionState: closed,
    comes: 'refused: exit 2',
    because: 'other people may approve it',
  },
  {
    sessionState: 'waiting for others',
    comes: 'refused: not_an_approver',
    because: 'other people may approve it',
  },
  {
    sessionState: 'waiting for one more',
    comes: 'refused: already_answered',
    because: 'the sender has approved it',
  },

  // An MCP client's call starts a run, or returns the run that the same call has started.
  {
    of: 'mcpServer',
    does: ['begin', 'call again'],
    sessionState: 'new',
    comes: 'begun',
    because: 'nothing is under way',
  },
  {
    of: 'mcpServer',
    sessionState: 'new',
    comes: 'refused: unknown_task',
    because: 'there is no such session',
  },
  {
    of: 'mcpServer',
    does: ['begin', 'call again'],
    agent: 'other agent',
    comes: 'refused: session_in_use',
    because: 'the session belongs to another tool',
  },
  {
    of: 'mcpServer',
    does: 'begin',
    sessionState: 'ended',
    comes: 'begun',
    because: 'nothing is under way',
  },
  {
    of: 'mcpServer',
    does: 'begin',
    comes: 'refused: session_in_use',
    because: 'a run is under way, and the server keeps no message',
  },
  {
    does: 'call again',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'interrupted',
    comes: 'gone on',
    because: 'a call that is sent again makes the run work with the rights of its sender',
  },
  {
    does: 'call again',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'poisoned',
    comes: 'ERROR',
    because: 'it has ended five processes',
  },
  { does: 'call again', comes: 'nothing', because: 'it leads to the run that it began' },
  {
    of: 'mcpServer',
    does: 'answer',
    agent: foreign,
    sessionState: 'waiting',
    comes: 'told',
    because: 'the process that goes on with it hears it',
  },
  {
    of: 'mcpServer',
    does: 'answer',
    sessionState: ['interrupted', 'poisoned', 'ended', ...held],
    comes: 'nothing',
    because: 'an answer to what is not asked changes nothing, and starts nothing',
  },
  {
    of: 'mcpServer',
    does: 'stop',
    sessionState: 'ended',
    comes: 'nothing',
    because: 'there is nothing to stop',
  },
  {
    of: 'mcpServer',
    does: 'follow',
    sessionState: held,
    comes: 'nothing',
    because: 'its holder had it when it was asked for',
  },

  {
    of: 'statewright send (many)',
    sessionState: ['new', 'ended'],
    comes: 'nothing',
    because: 'no run that has not ended matches',
  },
  {
    of: 'createWaker',
    sessionState: 'new',
    comes: 'nothing',
    because: 'an alarm begins nothing, and the alarm of a deleted session is removed',
  },
  { of: 'createWaker', sessionState: held, comes: 'nothing', because: 'the process that holds it wakes it' },
  {
    of: 'createWaker',
    sessionState: open,
    agent: foreign,
    comes: 'nothing',
    because: 'the alarm is left to a process that has the agent',
  },

  // Read access has no effects, with any agent.
  {
    does: 'look',
    of: [
      'chatHandler',
      'aguiHandler',
      'studio.sessions',
      'studio.chart',
      'studio.visits',
      'listStrandedSessions',
      'statewright sessions list',
    ],
    sessionState: 'new',
    comes: 'nothing',
    because: 'there is nothing to see',
  },
  {
    does: 'look',
    of: ['studio.chart', 'studio.visits', 'listStrandedSessions'],
    comes: 'nothing',
    because: 'it shows no words',
  },
  {
    does: ['look', 'fork', 'fork and run', 'forget', 'continue', 'answer', 'steer', 'stop'],
    of: 'statewright',
    sessionState: 'new',
    comes: 'refused: exit 2',
    because: 'there is no such session',
  },
  {
    does: 'look',
    of: ['statewright guards', 'statewright grants'],
    comes: 'nothing',
    because: 'it shows no words',
  },
  {
    does: 'look',
    sessionState: 'new',
    comes: 'refused: unknown_session',
    because: 'there is no such session',
  },
  { does: 'look', of: 'agent.listBranches', comes: 'nothing', because: 'it shows no words' },
  { does: 'look', comes: 'shown', because: 'a person who may read sees the session, and starts nothing' },

  // A branch starts work where a run could start, with the request's rights. It does not take over other
  // work.
  {
    does: ['branch', 'turn back'],
    sessionState: 'new',
    comes: 'refused: unknown_session',
    because: 'there is no such session',
  },
  { does: 'turn back', sessionState: held, comes: 'refused: session_busy', because: 'a process has it' },
  { does: 'turn back', comes: 'refused: unknown_branch', because: 'the session has never parted' },
  { does: 'branch', sessionState: 'ended', comes: 'begun', because: 'nothing is under way' },
  {
    does: 'branch',
    of: pages,
    sessionState: 'waiting',
    comes: 'refused: waiting_for_answers',
    because: 'a question waits',
  },
  {
    does: 'branch',
    of: anotherAnswer,
    who: 'owner',
    agent: foreign,
    sessionState: ['interrupted', 'poisoned'],
    comes: 'nothing',
    because: 'the answer that is asked for was cut off, and another agent only watches',
  },
  {
    does: 'branch',
    of: anotherAnswer,
    who: 'owner',
    sessionState: 'interrupted',
    comes: 'gone on',
    because: 'the answer that is asked for was cut off, and the owner may continue it',
  },
  {
    does: 'branch',
    of: anotherAnswer,
    who: 'owner',
    sessionState: 'poisoned',
    comes: 'ERROR',
    because: 'it has ended five processes',
  },
  { does: 'branch', of: pages, comes: 'refused: run_in_progress', because: 'a run is under way' },
  { does: 'branch', sessionState: held, comes: 'refused: session_busy', because: 'a process has it' },
  { does: 'branch', comes: 'refused: unfinished_run', because: 'a run is under way' },

  // A run starts if none is active. The app chooses its agent.
  {
    does: 'begin',
    of: [...pages, 'agent.run', 'statewright run'],
    sessionState: ['new', 'ended'],
    comes: 'begun',
    because: 'nothing is under way',
  },
  {
    does: 'begin',
    of: ['chatHandler.send (refusing)', 'aguiHandler.send (refusing)'],
    sessionState: 'waiting',
    comes: 'refused: waiting_for_answers',
    because: 'the server keeps no message',
  },
  {
    does: 'begin',
    of: ['chatHandler.send (refusing)', 'aguiHandler.send (refusing)'],
    sessionState: atWork,
    comes: 'refused: run_in_progress',
    because: 'the server keeps no message, and a message alone continues nothing',
  },
  {
    does: 'begin',
    of: tells,
    sessionState: ['ended', 'waiting'],
    comes: 'told',
    because: 'it waits for its turn, and begins nothing by itself',
  },
  { does: 'begin', sessionState: 'ended', comes: 'begun', because: 'it is its second turn' },
  {
    does: 'begin',
    of: pages,
    sessionState: 'waiting',
    comes: 'told',
    because: 'a question waits: the message waits for its turn',
  },
  {
    does: 'begin',
    of: tells,
    sessionState: 'new',
    comes: 'refused: unknown_session',
    because: 'there is no such session',
  },
  {
    does: 'begin',
    of: ['chatHandler.send (steering)', 'aguiHandler.send (steering)'],
    who: 'owner',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'left by its holder',
    comes: 'gone on',
    because: 'the owner may continue what its process has left, and it hears the message as it goes on',
  },
  {
    does: 'begin',
    of: pages,
    who: 'owner',
    agent: ['right agent', 'accepting agent'],
    sessionState: ['interrupted', 'left by its holder'],
    comes: 'gone on, told',
    because: 'the owner may continue what its process has left, and the message waits for its end',
  },
  {
    does: 'begin',
    of: pages,
    who: 'owner',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'poisoned',
    comes: 'told, ERROR',
    because: 'it has ended five processes, and the message waits until the owner writes again',
  },
  {
    does: 'begin',
    of: [...pages, ...tells],
    comes: 'told',
    because: 'it waits for its turn, and begins nothing by itself',
  },
  { does: 'begin', of: 'statewright run', comes: 'refused: exit 2', because: 'a run is under way' },
  { does: 'begin', of: 'dbosSessions', comes: 'nothing', because: later },
  { does: 'begin', sessionState: held, comes: 'refused: session_busy', because: 'a process has it' },
  { does: 'begin', of: 'agent.run', comes: 'refused: unfinished_run', because: 'a run is under way' },
  { does: 'begin', comes: 'refused: out_of_turn', because: 'its first turn has not ended' },

  // A batch starts its items and waits for items held by other processes.
  { of: 'runAll', sessionState: 'new', comes: 'begun', because: 'the item has no session yet' },
  { of: 'runAll', sessionState: held, comes: 'nothing', because: 'a process has it, and the batch waits' },

  // Sessions that do not exist yet.
  { does: 'follow', sessionState: 'new', comes: 'nothing', because: 'there is nothing to see' },
  {
    does: 'stop',
    of: pages,
    sessionState: ['new', 'ended'],
    comes: 'nothing',
    because: 'there is nothing to stop',
  },
  {
    does: 'stop',
    of: 'sendAll',
    sessionState: ['new', 'ended'],
    comes: 'nothing',
    because: 'no run that has not ended matches',
  },
  { does: 'forget', sessionState: 'new', comes: 'nothing', because: 'there was none' },
  {
    does: 'answer',
    of: 'chatHandler',
    sessionState: 'new',
    comes: 'refused: unknown_call',
    because: 'nothing has been asked',
  },
  {
    sessionState: 'new',
    of: ['runSession', 'createSessionRunner', 'dbosSessions.enqueue', 'restateSessions.run'],
    comes: 'refused: not_begun',
    because: 'there is nothing to run',
  },
  { sessionState: 'new', comes: 'refused: unknown_session', because: 'there is no such session' },

  // Following: a page watches. It continues a run only if `mayContinue` allows it and its agent started the
  // run.
  { does: 'follow', agent: foreign, comes: 'nothing', because: 'another agent only watches' },
  { does: 'follow', who: 'reader', comes: 'nothing', because: 'reading starts nothing' },
  {
    does: 'follow',
    sessionState: ['interrupted', 'left by its holder'],
    comes: 'gone on',
    because: 'the owner may continue what its process has left',
  },
  { does: 'follow', sessionState: 'poisoned', comes: 'ERROR', because: 'it has ended five processes' },
  { does: 'follow', comes: 'nothing', because: 'it rests, or its holder goes on with it' },

  // A stop needs only the store, not an agent.
  {
    does: 'stop',
    of: ['runSession'],
    sessionState: held,
    comes: 'refused: session_busy',
    because: 'a process has it',
  },
  {
    does: 'stop',
    of: 'runSession',
    sessionState: 'ended',
    comes: 'nothing',
    because: 'there is nothing to stop',
  },
  {
    does: 'stop',
    of: 'runSession',
    agent: foreign,
    comes: 'refused: stranded',
    because: 'a run is of the agent that began it',
  },
  {
    does: 'stop',
    of: 'runSession',
    sessionState: 'interrupted',
    comes: 'gone on',
    because: 'the answers are for the next rest',
  },
  {
    does: 'stop',
    of: 'runSession',
    sessionState: 'poisoned',
    comes: 'ERROR',
    because: 'it has ended five processes',
  },
  { does: 'stop', sessionState: held, comes: 'told', because: 'its holder hears it' },
  {
    does: 'stop',
    of: 'studio.answers (pause)',
    comes: 'refused: wrong_state',
    because: 'only what some process works on can pause',
  },
  {
    does: 'stop',
    of: ['agent.send', 'restateSessions.send'],
    sessionState: 'ended',
    comes: 'refused: run_ended',
    because: 'it has ended',
  },
  {
    does: 'stop',
    of: 'statewright',
    sessionState: 'ended',
    comes: 'refused: exit 2',
    because: 'it has ended',
  },
  { does: 'stop', sessionState: 'ended', comes: 'refused: wrong_state', because: 'it has ended' },
  { does: 'stop', comes: 'CANCELLED', because: 'a person who may write may end it, with the store alone' },

  // Steering and pausing: allowed for a process with the store, if a process works or a person is asked.
  {
    does: 'steer',
    of: 'statewright',
    sessionState: ['ended', 'interrupted', 'poisoned'],
    comes: 'refused: exit 2',
    because: 'nothing works on it',
  },
  { does: 'steer', sessionState: 'ended', comes: 'refused: run_ended', because: 'it has ended' },
  { does: 'steer', sessionState: held, comes: 'told', because: 'its holder hears it' },
  {
    does: 'steer',
    of: 'statewright send (a pause)',
    comes: 'refused: exit 2',
    because: 'what waits for people need not pause',
  },
  {
    does: 'steer',
    of: 'agent.send (a pause)',
    comes: 'refused: not_waiting',
    because: 'what waits for people need not pause',
  },
  { does: 'steer', sessionState: 'waiting', comes: 'told', because: 'the model hears it with the answer' },
  { does: 'steer', comes: 'refused: not_waiting', because: 'its process has left it: resume it first' },

  // Copies and deletions of the whole session.
  { does: 'fork', comes: 'forked', because: 'a copy leaves the other as it is, and runs nothing' },
  {
    does: 'fork and run',
    agent: foreign,
    comes: 'refused: stranded',
    because: 'a fork is of the agent that began it, and one that cannot run is not made',
  },
  { does: 'fork and run', comes: 'forked, gone on', because: 'it is a session of its own' },
  {
    does: 'forget',
    of: 'statewright',
    sessionState: held,
    comes: 'refused: exit 2',
    because: 'a process has it',
  },
  {
    does: 'forget',
    of: 'agent.deleteSessions',
    sessionState: held,
    comes: 'refused: session_busy, told',
    because: 'it tells the holder to cancel the run, and this one hangs for longer than it waits',
  },
  { does: 'forget', sessionState: held, comes: 'refused: session_busy', because: 'a process has it' },
  { does: 'forget', comes: 'deleted', because: 'the operator of the store may forget' },

  // Answers left for the process that continues: any process may leave one, and the call must be waiting.
  {
    does: 'answer',
    of: ['agent.send', 'restateSessions.send', 'dbosSessions.answer'],
    sessionState: 'ended',
    comes: 'refused: run_ended',
    because: 'it has ended',
  },
  {
    does: 'answer',
    of: 'dbosSessions.answer',
    agent: ['right agent', 'accepting agent'],
    sessionState: 'waiting',
    comes: 'gone on',
    because: 'it is left, and driven at once',
  },
  {
    does: 'answer',
    of: ['agent.send', 'restateSessions.send', 'dbosSessions.answer', 'statewright send'],
    sessionState: 'waiting',
    comes: 'told',
    because: 'the process that goes on with it hears it',
  },
  {
    does: 'answer',
    of: ['agent.send', 'restateSessions.send', 'dbosSessions.answer'],
    comes: 'refused: unknown_call',
    because: 'this call does not wait',
  },
  { does: 'answer', of: 'statewright send', comes: 'refused: exit 2', because: 'this call does not wait' },

  // The command line has a separate, unnamed agent.
  {
    of: 'statewright resume',
    does: 'continue',
    sessionState: 'ended',
    comes: 'nothing',
    because: 'it shows how it has ended',
  },
  {
    of: 'statewright resume',
    does: 'continue',
    sessionState: 'waiting',
    comes: 'nothing',
    because: 'it shows what waits',
  },
  {
    of: 'statewright resume',
    comes: 'refused: exit 2',
    because: 'a process has it, the call does not wait, or it is the session of a named agent',
  },

  // A mark starts nothing. It needs the right to answer.
  {
    does: 'mark',
    sessionState: held,
    comes: 'marked',
    because: 'the process that has it needs no lease from the studio',
  },
  {
    does: 'mark',
    agent: foreign,
    comes: 'refused: stranded',
    because: 'another agent, another version and an agent without a name must not answer it',
  },
  { does: 'mark', comes: 'marked', because: 'who may answer a session may mark its steps' },

  // Answers from the studio and pages are checked against the call first.
  {
    does: 'answer',
    of: 'chatHandler.send (an output)',
    sessionState: 'waiting',
    comes: 'refused: unknown_call',
    because: 'the call waits for a person, and a page must not say what came of it',
  },
  {
    does: 'answer',
    of: 'aguiHandler.send (an output)',
    sessionState: 'waiting',
    comes: 'refused: waiting_for_answers',
    because: 'the call waits for a person, and a page must not say what came of it',
  },
  {
    does: 'answer',
    of: 'studio.answers (reply)',
    comes: 'refused: wrong_state',
    because: 'no message is waited for',
  },
  {
    does: 'answer',
    of: 'studio.answers (toolOutput)',
    comes: 'refused: unknown_call',
    because: 'no output is waited for',
  },
  {
    does: 'answer',
    of: 'aguiHandler',
    sessionState: 'ended',
    comes: 'refused: already_answered',
    because: 'it was answered',
  },
  {
    does: 'answer',
    of: [...pages, 'studio'],
    sessionState: ['ended', ...atWork],
    comes: 'refused: unknown_call',
    because: 'this call does not wait',
  },
  {
    does: 'continue',
    of: 'studio',
    sessionState: 'ended',
    comes: 'refused: wrong_state',
    because: 'it has ended',
  },
  {
    does: 'continue',
    of: 'studio.answers (resume)',
    sessionState: 'waiting',
    comes: 'refused: wrong_state',
    because: 'it waits for an answer',
  },
  {
    does: 'continue',
    of: 'studio.answers (resume)',
    sessionState: held,
    comes: 'refused: not_waiting',
    because: 'its holder goes on with it',
  },
  {
    does: 'continue',
    of: 'studio.answers (steer)',
    sessionState: held,
    comes: 'told',
    because: 'its holder hears it',
  },

  // Continuing: once, with the agent that started it, and not if the session kills its processes.
  { of: 'dbosSessions', sessionState: held, comes: 'nothing', because: later },
  { of: 'dbosSessions', agent: foreign, sessionState: open, comes: 'nothing', because: later },
  { sessionState: held, comes: 'refused: session_busy', because: 'a process has it' },
  { sessionState: 'ended', comes: 'nothing', because: 'what has ended is told as it ended' },
  {
    agent: foreign,
    sessionState: open,
    comes: 'refused: stranded',
    because: 'another agent, another version and an agent without a name must not go on with it',
  },
  {
    of: 'studio.answers (steer)',
    sessionState: 'poisoned',
    comes: 'refused: wrong_state, ERROR',
    because: 'it has ended five processes, so it takes no steering',
  },
  { sessionState: 'poisoned', comes: 'ERROR', because: 'it has ended five processes' },
  { sessionState: 'interrupted', comes: 'gone on', because: 'its process has left it' },
  { does: 'answer', sessionState: 'waiting', comes: 'gone on', because: 'it has its answer' },
  {
    of: 'studio.answers (steer)',
    sessionState: 'waiting',
    comes: 'taken up',
    because: 'the model hears it with the answer',
  },
  { does: 'continue', sessionState: 'waiting', comes: 'nothing', because: 'it waits for people' },
]

/** As the table names a surface: `studio.answers (cancel)`. */
export const nameOfSurface = ({ of, as }: Cell['surface']): string =>
  as === undefined ? of : `${of} (${as})`

export function ruleOf({ surface, agent, who, sessionState }: Cell): Rule | undefined {
  const name = nameOfSurface(surface)
  // A person who may approve may also reject.
  const mayReject = sessionState === 'waiting for one more' && surface.as?.includes('reject')
  return rules.find(
    (rule) =>
      (rule.of === undefined || [rule.of].flat().some((prefix) => name.startsWith(prefix))) &&
      isOneOf(rule.does, surface.does) &&
      isOneOf(rule.who, who) &&
      isOneOf(rule.agent, agent) &&
      isOneOf(rule.sessionState, mayReject ? 'waiting' : sessionState),
  )
}

function isOneOf<Value>(allowed: Value | Value[] | undefined, value: Value): boolean {
  return allowed === undefined || [allowed].flat().includes(value)
}
