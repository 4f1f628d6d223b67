/** Holds everything that test clients get from kernels of this process against the API documents. Imported by every process of a test run. */
import { useWitness } from '../../../kernel/testing.ts'
import { answerProblem } from './answers.ts'
import { frameProblem } from './frames.ts'

useWitness({ answer: answerProblem, frame: frameProblem })
