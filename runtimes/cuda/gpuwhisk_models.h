// Made by native/cudasim/tables.mjs from model.json and contention/fitted.json: edit those.
//
// Workloads of the papers, as the stand-in for a GPU runs them: a table for C (define GPUWHISK_MODEL) and for Python,
// which reads these lines as text.
//
// GPUWHISK_MODEL(name, fixedMs, itemMs, weightsMiB, itemMiB, fullBatch, dram, sensitivity, pressure)
// A batch of b takes fixedMs + b * itemMs alone on a whole A100. It fills b / fullBatch of the SMs, and at that uses as
// much of the part `dram` of the memory's bandwidth. Weights: four bytes a parameter, two for the large language models.
// Sensitivity and pressure are factors on those of its fill, in training steps.
// itemMiB and dram are assumed, not measured, and so are the fullBatch and factors of 1 that fitted.json does not have.
// fullBatch of resnet152, resnet101, resnet50, densenet121, vgg16, mobilenet_v2:
// fitted to ParvaGPU. Factors other than 1: fitted to Gavel. Times are from:
//   resnet152, resnet101, resnet50, resnet34, resnet18, densenet121, densenet161, densenet201, vgg19, vgg16, mobilenet,
//   qwen2_7b, llama3_2_3b, deepseek_r1_1_5b: FaaShare, table I: a straight line through a quarter of the SLOs given
//   there (an SLO is four times the time alone), which it meets within 6 %.
//   deepvit, bert, roberta, deepfm, segnet: SMORE, table II: the warm start, at batch 1; its division into a fixed part
//   and a part of each item is assumed.
//   roberta_large: Dilu, section 3.4: an inference takes some 25 ms when alone; taken for batch 4, half of it fixed,
//   which is assumed.
//   gpt2_large: the row roberta_large, times the numbers of parameters by one another (774 / 355 million: the models'
//   cards).
//   llama2_7b, chatglm3_6b: a token reads all weights once: their bytes by the memory's 1555 GB/s; of each item two
//   operations a parameter, at 40 % of 312 TFLOP/s.
//   dpn92, simplified_dla: operations of an image (torchvision's model pages; the papers of DPN, DLA and SENet) at the
//   rate of the row resnet50; the fixed part is resnet50's by numbers of layers, roughly.
//   googlenet, senet18, mobilenet_v1, mobilenet_v2, shufflenet_v2, efficientnet_b0: PROTEAN, section 5: batches of 128
//   take 50 to 200 ms; the operations at the rate of the rows resnet50 and mobilenet would take less, so 50 ms it is.
//   albert, distilbert, flaubert, gpt1, gpt2: the row bert, by numbers of layers of that width (the models' papers);
//   sequences of one length.
//   deberta, funnel, squeezebert: the row bert, times a factor for the other layers, which is invented.

// FaaShare
GPUWHISK_MODEL(resnet152, 5.185, 1.4292, 230.0, 22.0, 15.37, 0.45, 1.0, 1.0)
GPUWHISK_MODEL(resnet101, 5.63, 0.9755, 170.0, 17.0, 13.12, 0.45, 1.0, 1.0)
GPUWHISK_MODEL(resnet50, 2.196, 0.603, 98.0, 12.0, 11.42, 0.4, 1.28, 1.529)
GPUWHISK_MODEL(resnet34, 1.75, 0.3414, 84.0, 6.0, 24.0, 0.35, 1.0, 1.0)
GPUWHISK_MODEL(resnet18, 0.833, 0.1939, 45.0, 4.0, 32.0, 0.3, 0.9397, 0.9242)
GPUWHISK_MODEL(densenet121, 2.543, 0.6639, 31.0, 14.0, 26.24, 0.55, 1.0, 1.0)
GPUWHISK_MODEL(densenet161, 6.446, 1.4859, 110.0, 26.0, 12.0, 0.55, 1.0, 1.0)
GPUWHISK_MODEL(densenet201, 5.293, 1.0639, 77.0, 20.0, 16.0, 0.55, 1.0, 1.0)
GPUWHISK_MODEL(vgg19, 2.228, 1.5587, 548.0, 14.0, 8.0, 0.6, 1.0, 1.0)
GPUWHISK_MODEL(vgg16, 1.604, 1.2912, 528.0, 13.0, 1.293, 0.6, 1.0, 1.0)
GPUWHISK_MODEL(mobilenet, 0.804, 0.2227, 14.0, 5.0, 64.0, 0.3, 1.0, 1.0)
GPUWHISK_MODEL(qwen2_7b, 0.0, 50.0, 14525.0, 512.0, 1.0, 0.9, 1.0, 1.0)
GPUWHISK_MODEL(llama3_2_3b, 0.0, 40.0, 6128.0, 448.0, 1.0, 0.9, 1.0, 1.0)
GPUWHISK_MODEL(deepseek_r1_1_5b, 0.0, 35.0, 3390.0, 224.0, 1.0, 0.85, 1.0, 1.0)

// SMORE
GPUWHISK_MODEL(deepvit, 8.0, 3.0, 185.0, 24.0, 8.0, 0.4, 1.0, 1.0)
GPUWHISK_MODEL(bert, 22.0, 15.0, 418.0, 30.0, 4.0, 0.5, 1.0, 1.0)
GPUWHISK_MODEL(roberta, 6.0, 4.0, 475.0, 30.0, 4.0, 0.5, 1.0, 1.0)
GPUWHISK_MODEL(deepfm, 7.5, 0.5, 130.0, 1.0, 128.0, 0.25, 1.0, 1.0)
GPUWHISK_MODEL(segnet, 20.0, 30.0, 112.0, 96.0, 2.0, 0.55, 1.0, 1.0)

// Dilu
GPUWHISK_MODEL(roberta_large, 12.5, 3.125, 1354.0, 50.0, 4.0, 0.6, 1.0, 1.0)
GPUWHISK_MODEL(gpt2_large, 27.254, 6.8134, 2953.0, 90.0, 2.0, 0.7, 1.0, 1.0)
GPUWHISK_MODEL(llama2_7b, 8.669, 0.108, 12856.0, 512.0, 1.0, 0.95, 1.0, 1.0)
GPUWHISK_MODEL(chatglm3_6b, 8.026, 0.1, 11902.0, 32.0, 1.0, 0.95, 1.0, 1.0)

// PROTEAN
GPUWHISK_MODEL(dpn92, 4.0, 0.9583, 144.0, 33.0, 12.0, 0.6, 1.0, 1.0)
GPUWHISK_MODEL(simplified_dla, 1.8, 0.4526, 60.0, 10.0, 24.0, 0.45, 1.0, 1.0)
GPUWHISK_MODEL(googlenet, 0.8, 0.3844, 25.0, 7.0, 24.0, 0.35, 1.0, 1.0)
GPUWHISK_MODEL(senet18, 0.8, 0.3844, 45.0, 5.0, 32.0, 0.3, 1.0, 1.0)
GPUWHISK_MODEL(mobilenet_v1, 0.8, 0.3844, 16.0, 6.0, 64.0, 0.3, 1.0, 1.0)
GPUWHISK_MODEL(mobilenet_v2, 0.8, 0.3844, 13.0, 7.0, 26.24, 0.3, 1.0, 1.0)
GPUWHISK_MODEL(shufflenet_v2, 0.8, 0.3844, 9.0, 3.0, 64.0, 0.2, 1.0, 1.0)
GPUWHISK_MODEL(efficientnet_b0, 0.8, 0.3844, 20.0, 8.0, 48.0, 0.35, 1.0, 1.0)
GPUWHISK_MODEL(albert, 22.0, 15.0, 45.0, 30.0, 4.0, 0.7, 1.0, 1.0)
GPUWHISK_MODEL(deberta, 33.0, 22.5, 530.0, 30.0, 4.0, 0.7, 1.0, 1.0)
GPUWHISK_MODEL(distilbert, 11.0, 7.5, 252.0, 30.0, 4.0, 0.65, 1.0, 1.0)
GPUWHISK_MODEL(flaubert, 22.0, 15.0, 526.0, 30.0, 4.0, 0.7, 1.0, 1.0)
GPUWHISK_MODEL(funnel, 24.2, 16.5, 675.0, 30.0, 4.0, 0.7, 1.0, 1.0)
GPUWHISK_MODEL(squeezebert, 22.0, 15.0, 195.0, 30.0, 4.0, 0.65, 1.0, 1.0)
GPUWHISK_MODEL(gpt1, 22.0, 15.0, 446.0, 30.0, 4.0, 0.95, 1.0, 1.0)
GPUWHISK_MODEL(gpt2, 22.0, 15.0, 473.0, 30.0, 4.0, 0.95, 1.0, 1.0)
