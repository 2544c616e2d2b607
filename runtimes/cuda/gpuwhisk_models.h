// Workloads of the papers, as the stand-in for a GPU runs them: a table for C (define GPUWHISK_MODEL) and for Python, which
// reads these lines as text.
//
// GPUWHISK_MODEL(name, fixedMs, itemMs, weightsMiB, itemMiB, fullBatch, dram)
// A batch of b takes fixedMs + b * itemMs alone on a whole A100. It fills b / fullBatch of the SMs, and at that uses as much
// of the part `dram` of the memory's bandwidth.
//
// Times: FaaShare, table I: a straight line through a quarter of the SLOs given there (an SLO is four times the time alone),
// which it meets within 6 %. SMORE, table II: the warm start, at batch 1. Dilu and PROTEAN name their models without times of
// theirs. Weights: four bytes a parameter, two for the large language models. itemMiB, fullBatch and dram are assumed, not
// measured: dram by PROTEAN's division into models of high and low interference.

// FaaShare, table I
GPUWHISK_MODEL(resnet152, 5.185, 1.4292, 230, 22, 12, 0.45)
GPUWHISK_MODEL(resnet101, 5.630, 0.9755, 170, 17, 16, 0.45)
GPUWHISK_MODEL(resnet50, 2.196, 0.6030, 98, 12, 16, 0.40)
GPUWHISK_MODEL(resnet34, 1.750, 0.3414, 84, 6, 24, 0.35)
GPUWHISK_MODEL(resnet18, 0.833, 0.1939, 45, 4, 32, 0.30)
GPUWHISK_MODEL(densenet121, 2.543, 0.6639, 31, 14, 16, 0.55)
GPUWHISK_MODEL(densenet161, 6.446, 1.4859, 110, 26, 12, 0.55)
GPUWHISK_MODEL(densenet201, 5.293, 1.0639, 77, 20, 16, 0.55)
GPUWHISK_MODEL(vgg19, 2.228, 1.5587, 548, 14, 8, 0.60)
GPUWHISK_MODEL(vgg16, 1.604, 1.2912, 528, 13, 8, 0.60)
GPUWHISK_MODEL(mobilenet, 0.804, 0.2227, 14, 5, 64, 0.30)
GPUWHISK_MODEL(qwen2_7b, 0.0, 50.0, 14525, 512, 1, 0.90)
GPUWHISK_MODEL(llama3_2_3b, 0.0, 40.0, 6128, 448, 1, 0.90)
GPUWHISK_MODEL(deepseek_r1_1_5b, 0.0, 35.0, 3390, 224, 1, 0.85)
// SMORE, table II
GPUWHISK_MODEL(deepvit, 8.0, 3.0, 185, 24, 8, 0.40)
GPUWHISK_MODEL(bert, 22.0, 15.0, 418, 30, 4, 0.50)
GPUWHISK_MODEL(roberta, 6.0, 4.0, 475, 30, 4, 0.50)
GPUWHISK_MODEL(deepfm, 7.5, 0.5, 130, 1, 128, 0.25)
GPUWHISK_MODEL(segnet, 20.0, 30.0, 112, 96, 2, 0.55)
