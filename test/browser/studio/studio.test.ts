import { jest } from '@jest/globals'
import { describeAbsences } from './absences.js'
import { describeAnswers } from './answers.js'
import { describeEmbedded } from './embedded.js'
import { describeEveryScreen } from './every-screen.js'
import { describeExpiry } from './expiry.js'
import { describeGlance } from './glance.js'
import { describeGrants } from './grants.js'
import { describeInert } from './inert.js'
import { describeKeyboard } from './keyboard.js'
import { describeOneFile } from './one-file.js'
import { describeQuestions } from './questions.js'
import { describeRun } from './run.js'
import { describeSessionList } from './session-list.js'
import { describeSessionSearch } from './session-search.js'
import { describeShare } from './share.js'
import { describeSleep } from './sleep.js'
import { describeStrangers } from './strangers.js'
import { describeTranscript } from './transcript.js'
import { describeWhatIf } from './what-if.js'

jest.setTimeout(90_000)

// In this order, because the last ones answer sessions and take the store offline.
describeStrangers()
describeEveryScreen()
describeSessionSearch()
describeSessionList()
describeRun()
describeGlance()
describeQuestions()
describeTranscript()
describeInert()
describeKeyboard()
describeWhatIf()
describeOneFile()
describeShare()
describeEmbedded()
describeSleep()
describeExpiry()
describeGrants()
describeAnswers()
describeAbsences()
